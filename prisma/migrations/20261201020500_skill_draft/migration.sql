-- CreateTable
CREATE TABLE "skill_store"."draft" (
    "session_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "draft_pkey" PRIMARY KEY ("session_id","name")
);

-- CreateIndex
CREATE INDEX "draft_expires_at_idx" ON "skill_store"."draft"("expires_at");
