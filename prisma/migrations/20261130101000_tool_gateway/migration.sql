
-- CreateTable
CREATE TABLE "tool_gateway"."call" (
    "operation_id" TEXT NOT NULL,
    "origin_run_id" UUID NOT NULL,
    "run_id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "step" INTEGER NOT NULL,
    "call_id" TEXT NOT NULL,
    "tool" TEXT NOT NULL,
    "target" JSONB,
    "arguments_hash" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "principal" TEXT NOT NULL,
    "rule" TEXT,
    "interaction_id" UUID,
    "gateway_id" UUID NOT NULL,
    "status" TEXT NOT NULL,
    "is_parked" BOOLEAN NOT NULL DEFAULT false,
    "fault" JSONB,
    "result_digest" TEXT,
    "result_bytes" INTEGER,
    "resolution" JSONB,
    "claimed_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),
    "duration_ms" DOUBLE PRECISION,

    CONSTRAINT "call_pkey" PRIMARY KEY ("operation_id")
);

-- CreateTable
CREATE TABLE "tool_gateway"."call_arguments" (
    "operation_id" TEXT NOT NULL,
    "preview" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "call_arguments_pkey" PRIMARY KEY ("operation_id")
);

-- CreateTable
CREATE TABLE "tool_gateway"."grant" (
    "operation_id" TEXT NOT NULL,
    "interaction_id" UUID NOT NULL,
    "target_hash" TEXT NOT NULL,
    "arguments_hash" TEXT NOT NULL,
    "policy_version" INTEGER NOT NULL,
    "decided_by" JSONB NOT NULL,
    "decided_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "settled_at" TIMESTAMPTZ(3),
    "result" TEXT,

    CONSTRAINT "grant_pkey" PRIMARY KEY ("operation_id")
);

-- CreateTable
CREATE TABLE "tool_gateway"."artifact" (
    "session_id" UUID NOT NULL,
    "digest" TEXT NOT NULL,
    "bytes" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "artifact_pkey" PRIMARY KEY ("session_id","digest")
);

-- CreateTable
CREATE TABLE "tool_gateway"."upload_part" (
    "session_id" UUID NOT NULL,
    "upload_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "data" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "upload_part_pkey" PRIMARY KEY ("session_id","upload_id","position")
);

-- CreateTable
CREATE TABLE "tool_gateway"."toolset" (
    "agent_id" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "tools" JSONB NOT NULL,
    "pool" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "toolset_pkey" PRIMARY KEY ("agent_id","digest")
);

-- CreateTable
CREATE TABLE "tool_gateway"."epoch" (
    "owner" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "epoch" BIGINT NOT NULL,

    CONSTRAINT "epoch_pkey" PRIMARY KEY ("owner")
);

-- CreateTable
CREATE TABLE "tool_gateway"."plan" (
    "session_id" UUID NOT NULL,
    "plan" JSONB NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "plan_pkey" PRIMARY KEY ("session_id")
);

-- CreateTable
CREATE TABLE "tool_gateway"."ended_run" (
    "origin_run_id" UUID NOT NULL,
    "ended_at" TIMESTAMPTZ(3) NOT NULL,
    "purged_at" TIMESTAMPTZ(3),

    CONSTRAINT "ended_run_pkey" PRIMARY KEY ("origin_run_id")
);

-- CreateIndex
CREATE INDEX "call_claimed_at_operation_id_idx" ON "tool_gateway"."call"("claimed_at" DESC, "operation_id" DESC);

-- CreateIndex
CREATE INDEX "call_session_id_claimed_at_idx" ON "tool_gateway"."call"("session_id", "claimed_at" DESC);

-- CreateIndex
CREATE INDEX "call_agent_id_claimed_at_idx" ON "tool_gateway"."call"("agent_id", "claimed_at" DESC);

-- CreateIndex
CREATE INDEX "call_run_id_idx" ON "tool_gateway"."call"("run_id");

-- CreateIndex
CREATE INDEX "call_origin_run_id_idx" ON "tool_gateway"."call"("origin_run_id");

-- CreateIndex
CREATE INDEX "call_status_idx" ON "tool_gateway"."call"("status");

-- CreateIndex
CREATE INDEX "call_is_parked_idx" ON "tool_gateway"."call"("is_parked");

-- CreateIndex
CREATE INDEX "call_arguments_created_at_idx" ON "tool_gateway"."call_arguments"("created_at");

-- CreateIndex
CREATE INDEX "artifact_expires_at_idx" ON "tool_gateway"."artifact"("expires_at");

-- CreateIndex
CREATE INDEX "upload_part_created_at_idx" ON "tool_gateway"."upload_part"("created_at");

-- CreateIndex
CREATE INDEX "ended_run_purged_at_ended_at_idx" ON "tool_gateway"."ended_run"("purged_at", "ended_at");

