
-- AlterTable
ALTER TABLE "plugin_registry"."installation" ADD COLUMN     "signed_by" TEXT,
ADD COLUMN     "signing_key" TEXT;

-- CreateTable
CREATE TABLE "plugin_registry"."publisher" (
    "key_id" TEXT NOT NULL,
    "publisher" TEXT NOT NULL,
    "public_key" TEXT NOT NULL,
    "added_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "publisher_pkey" PRIMARY KEY ("key_id")
);

