-- AlterTable
ALTER TABLE "session_service"."run" ADD COLUMN "used_at" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "admin_api"."edge_token" (
    "id" UUID NOT NULL,
    "hash" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "principal" TEXT NOT NULL,
    "session_id" UUID,
    "run_id" UUID,
    "names" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "edge_token_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "edge_token_hash_key" ON "admin_api"."edge_token"("hash");

-- CreateIndex
CREATE INDEX "edge_token_agent_id_idx" ON "admin_api"."edge_token"("agent_id");

-- CreateIndex
CREATE INDEX "edge_token_principal_idx" ON "admin_api"."edge_token"("principal");

