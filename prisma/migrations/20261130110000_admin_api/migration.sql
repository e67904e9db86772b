
-- CreateTable
CREATE TABLE "admin_api"."token" (
    "id" UUID NOT NULL,
    "hash" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "principal" TEXT NOT NULL,
    "groups" JSONB NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "token_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "admin_api"."role_grant" (
    "id" UUID NOT NULL,
    "who" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "project_id" TEXT,
    "agents" JSONB,
    "on_behalf_of" JSONB NOT NULL,
    "set" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "role_grant_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "admin_api"."worker_credential" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "pools" JSONB NOT NULL,
    "public_key" TEXT NOT NULL,
    "issued_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "worker_credential_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "admin_api"."audit_view" (
    "owner" TEXT NOT NULL,
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "action" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "principal" TEXT,
    "actor" TEXT,
    "record" JSONB NOT NULL,

    CONSTRAINT "audit_view_pkey" PRIMARY KEY ("owner","sequence")
);

-- CreateIndex
CREATE UNIQUE INDEX "token_hash_key" ON "admin_api"."token"("hash");

-- CreateIndex
CREATE INDEX "role_grant_who_idx" ON "admin_api"."role_grant"("who");

-- CreateIndex
CREATE UNIQUE INDEX "worker_credential_public_key_key" ON "admin_api"."worker_credential"("public_key");

-- CreateIndex
CREATE INDEX "worker_credential_agent_id_idx" ON "admin_api"."worker_credential"("agent_id");

-- CreateIndex
CREATE INDEX "audit_view_at_idx" ON "admin_api"."audit_view"("at");

-- CreateIndex
CREATE INDEX "audit_view_target_idx" ON "admin_api"."audit_view"("target");

