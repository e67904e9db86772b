
-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "admin_api";

-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "mcp_broker";

-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "plugin_registry";

-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "session_service";

-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "skill_store";

-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "tool_gateway";

-- CreateTable
CREATE TABLE "admin_api"."outbox" (
    "id" BIGSERIAL NOT NULL,
    "message_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "headers" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),
    "sequence" BIGINT,
    "error" TEXT,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "admin_api"."audit" (
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "record" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "mcp_broker"."outbox" (
    "id" BIGSERIAL NOT NULL,
    "message_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "headers" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),
    "sequence" BIGINT,
    "error" TEXT,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "mcp_broker"."audit" (
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "record" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "plugin_registry"."outbox" (
    "id" BIGSERIAL NOT NULL,
    "message_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "headers" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),
    "sequence" BIGINT,
    "error" TEXT,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "plugin_registry"."audit" (
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "record" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "session_service"."outbox" (
    "id" BIGSERIAL NOT NULL,
    "message_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "headers" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),
    "sequence" BIGINT,
    "error" TEXT,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."audit" (
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "record" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "skill_store"."outbox" (
    "id" BIGSERIAL NOT NULL,
    "message_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "headers" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),
    "sequence" BIGINT,
    "error" TEXT,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "skill_store"."audit" (
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "record" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "tool_gateway"."outbox" (
    "id" BIGSERIAL NOT NULL,
    "message_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "headers" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),
    "sequence" BIGINT,
    "error" TEXT,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "tool_gateway"."audit" (
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "record" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_pkey" PRIMARY KEY ("sequence")
);

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_id_key" ON "admin_api"."outbox"("message_id");

-- CreateIndex
CREATE INDEX "outbox_settled_at_id_idx" ON "admin_api"."outbox"("settled_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "audit_hash_key" ON "admin_api"."audit"("hash");

-- CreateIndex
CREATE INDEX "audit_at_idx" ON "admin_api"."audit"("at");

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_id_key" ON "mcp_broker"."outbox"("message_id");

-- CreateIndex
CREATE INDEX "outbox_settled_at_id_idx" ON "mcp_broker"."outbox"("settled_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "audit_hash_key" ON "mcp_broker"."audit"("hash");

-- CreateIndex
CREATE INDEX "audit_at_idx" ON "mcp_broker"."audit"("at");

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_id_key" ON "plugin_registry"."outbox"("message_id");

-- CreateIndex
CREATE INDEX "outbox_settled_at_id_idx" ON "plugin_registry"."outbox"("settled_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "audit_hash_key" ON "plugin_registry"."audit"("hash");

-- CreateIndex
CREATE INDEX "audit_at_idx" ON "plugin_registry"."audit"("at");

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_id_key" ON "session_service"."outbox"("message_id");

-- CreateIndex
CREATE INDEX "outbox_settled_at_id_idx" ON "session_service"."outbox"("settled_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "audit_hash_key" ON "session_service"."audit"("hash");

-- CreateIndex
CREATE INDEX "audit_at_idx" ON "session_service"."audit"("at");

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_id_key" ON "skill_store"."outbox"("message_id");

-- CreateIndex
CREATE INDEX "outbox_settled_at_id_idx" ON "skill_store"."outbox"("settled_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "audit_hash_key" ON "skill_store"."audit"("hash");

-- CreateIndex
CREATE INDEX "audit_at_idx" ON "skill_store"."audit"("at");

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_id_key" ON "tool_gateway"."outbox"("message_id");

-- CreateIndex
CREATE INDEX "outbox_settled_at_id_idx" ON "tool_gateway"."outbox"("settled_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "audit_hash_key" ON "tool_gateway"."audit"("hash");

-- CreateIndex
CREATE INDEX "audit_at_idx" ON "tool_gateway"."audit"("at");

