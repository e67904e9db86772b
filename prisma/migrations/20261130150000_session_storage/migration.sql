-- AlterTable
ALTER TABLE "session_service"."snapshot" ADD COLUMN     "swept_at" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "session_service"."known_journal" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "created" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "known_journal_pkey" PRIMARY KEY ("id")
);

