-- CreateTable
CREATE TABLE "session_service"."project" (
    "id" TEXT NOT NULL,
    "display" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "project_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."agent" (
    "id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,
    "model" TEXT NOT NULL,
    "instructions" TEXT NOT NULL,
    "policy" JSONB NOT NULL,
    "match" JSONB NOT NULL,
    "set" TEXT,
    "version" INTEGER NOT NULL,
    "policy_version" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "agent_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."session" (
    "id" UUID NOT NULL,
    "project_id" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "principal" JSONB NOT NULL,
    "principal_id" TEXT NOT NULL,
    "skills" TEXT[],
    "all_skills" BOOLEAN NOT NULL,
    "mode" TEXT NOT NULL,
    "workspace_id" TEXT,
    "parent_session_id" UUID,
    "adapter" TEXT NOT NULL,
    "endpoint" TEXT NOT NULL,
    "scene" TEXT NOT NULL,
    "scene_id" TEXT NOT NULL,
    "thread" TEXT,
    "conversation_key" TEXT,
    "version" INTEGER NOT NULL,
    "tape_head" INTEGER NOT NULL DEFAULT 0,
    "interaction_head" INTEGER NOT NULL DEFAULT 0,
    "queue_head" INTEGER NOT NULL DEFAULT 0,
    "retention" TEXT NOT NULL DEFAULT 'messages',
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."tape_entry" (
    "session_id" UUID NOT NULL,
    "id" INTEGER NOT NULL,
    "run_id" UUID,
    "origin_run_id" UUID,
    "kind" TEXT NOT NULL,
    "step" INTEGER,
    "call_id" TEXT,
    "role" TEXT,
    "content" JSON NOT NULL,
    "text" TEXT NOT NULL,
    "search" tsvector GENERATED ALWAYS AS (to_tsvector('simple', "text")) STORED,
    "retention" TEXT NOT NULL DEFAULT 'messages',
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "tape_entry_pkey" PRIMARY KEY ("session_id","id")
);

-- CreateTable
CREATE TABLE "session_service"."run" (
    "id" UUID NOT NULL,
    "origin_run_id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "attempt" INTEGER NOT NULL,
    "state_version" INTEGER NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "fingerprints" TEXT[],
    "pool" TEXT NOT NULL,
    "principal" JSONB NOT NULL,
    "roles" TEXT[],
    "reply_to" TEXT,
    "resumes" UUID,
    "fault" JSONB,
    "agent_version" INTEGER NOT NULL,
    "policy_version" INTEGER NOT NULL,
    "job_version" INTEGER NOT NULL DEFAULT 1,
    "uncounted" INTEGER NOT NULL DEFAULT 0,
    "requeue_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "run_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."run_attempt" (
    "run_id" UUID NOT NULL,
    "number" INTEGER NOT NULL,
    "token_hash" TEXT NOT NULL,
    "worker_id" UUID,
    "opened_at" TIMESTAMPTZ(3) NOT NULL,
    "closed_at" TIMESTAMPTZ(3),

    CONSTRAINT "run_attempt_pkey" PRIMARY KEY ("run_id","number")
);

-- CreateTable
CREATE TABLE "session_service"."run_step" (
    "origin_run_id" UUID NOT NULL,
    "step" INTEGER NOT NULL,
    "run_id" UUID NOT NULL,
    "calls_before" INTEGER NOT NULL,
    "calls" JSONB NOT NULL,
    "provider" TEXT,
    "model" TEXT,
    "input_tokens" INTEGER,
    "output_tokens" INTEGER,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "run_step_pkey" PRIMARY KEY ("origin_run_id","step")
);

-- CreateTable
CREATE TABLE "session_service"."interaction" (
    "id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "run_id" UUID NOT NULL,
    "origin_run_id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "step" INTEGER NOT NULL,
    "call_id" TEXT NOT NULL,
    "operation_id" TEXT NOT NULL,
    "order" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "tool" TEXT NOT NULL,
    "arguments_preview" TEXT NOT NULL,
    "arguments_hash" TEXT NOT NULL,
    "question" JSONB,
    "rule" TEXT,
    "approvers" TEXT[],
    "not_requester" BOOLEAN NOT NULL,
    "principal" JSONB NOT NULL,
    "target" JSONB,
    "owner" TEXT,
    "decided_by" JSONB,
    "decided_at" TIMESTAMPTZ(3),
    "reason" TEXT,
    "answer" JSONB,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "settled_at" TIMESTAMPTZ(3),

    CONSTRAINT "interaction_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."receipt" (
    "principal_id" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "session_id" UUID NOT NULL,
    "run_id" UUID,
    "agent_id" TEXT NOT NULL,
    "queued" BOOLEAN NOT NULL,
    "position" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "receipt_pkey" PRIMARY KEY ("principal_id","key")
);

-- CreateTable
CREATE TABLE "session_service"."queued_message" (
    "session_id" UUID NOT NULL,
    "place" INTEGER NOT NULL,
    "message" JSON NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "queued_message_pkey" PRIMARY KEY ("session_id","place")
);

-- CreateTable
CREATE TABLE "session_service"."snapshot" (
    "fingerprint" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "format" TEXT NOT NULL,
    "text" TEXT NOT NULL,
    "bytes" INTEGER NOT NULL,
    "tools" INTEGER NOT NULL,
    "skills" INTEGER NOT NULL,
    "retention" TEXT NOT NULL DEFAULT 'snapshots',
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "snapshot_pkey" PRIMARY KEY ("fingerprint")
);

-- CreateTable
CREATE TABLE "session_service"."mapping" (
    "session_id" UUID NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "owners" JSONB NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "mapping_pkey" PRIMARY KEY ("session_id","fingerprint")
);

-- CreateTable
CREATE TABLE "session_service"."owner_fence" (
    "owner" TEXT NOT NULL,
    "service" TEXT NOT NULL,
    "fence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "owner_fence_pkey" PRIMARY KEY ("owner","service")
);

-- CreateTable
CREATE TABLE "session_service"."pool" (
    "agent_id" TEXT NOT NULL,
    "pool" TEXT NOT NULL,
    "consumer" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "pool_pkey" PRIMARY KEY ("agent_id","pool")
);

-- CreateIndex
CREATE INDEX "agent_project_id_id_idx" ON "session_service"."agent"("project_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "session_conversation_key_key" ON "session_service"."session"("conversation_key");

-- CreateIndex
CREATE INDEX "session_agent_id_created_at_idx" ON "session_service"."session"("agent_id", "created_at");

-- CreateIndex
CREATE INDEX "session_project_id_created_at_idx" ON "session_service"."session"("project_id", "created_at");

-- CreateIndex
CREATE INDEX "session_principal_id_created_at_idx" ON "session_service"."session"("principal_id", "created_at");

-- CreateIndex
CREATE INDEX "session_parent_session_id_idx" ON "session_service"."session"("parent_session_id");

-- CreateIndex
CREATE INDEX "tape_entry_origin_run_id_step_idx" ON "session_service"."tape_entry"("origin_run_id", "step");

-- CreateIndex
CREATE INDEX "tape_entry_search_idx" ON "session_service"."tape_entry" USING GIN ("search");

-- CreateIndex
CREATE UNIQUE INDEX "tape_entry_origin_run_id_step_call_id_kind_key" ON "session_service"."tape_entry"("origin_run_id", "step", "call_id", "kind");

-- CreateIndex
CREATE UNIQUE INDEX "run_resumes_key" ON "session_service"."run"("resumes");

-- CreateIndex
CREATE INDEX "run_session_id_created_at_idx" ON "session_service"."run"("session_id", "created_at");

-- CreateIndex
CREATE INDEX "run_agent_id_status_idx" ON "session_service"."run"("agent_id", "status");

-- CreateIndex
CREATE INDEX "run_origin_run_id_idx" ON "session_service"."run"("origin_run_id");

-- CreateIndex
CREATE INDEX "run_status_created_at_idx" ON "session_service"."run"("status", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "interaction_operation_id_key" ON "session_service"."interaction"("operation_id");

-- CreateIndex
CREATE INDEX "interaction_run_id_idx" ON "session_service"."interaction"("run_id");

-- CreateIndex
CREATE INDEX "interaction_status_expires_at_idx" ON "session_service"."interaction"("status", "expires_at");

-- CreateIndex
CREATE INDEX "interaction_project_id_created_at_idx" ON "session_service"."interaction"("project_id", "created_at");

-- CreateIndex
CREATE UNIQUE INDEX "interaction_session_id_position_key" ON "session_service"."interaction"("session_id", "position");

-- CreateIndex
CREATE INDEX "receipt_session_id_idx" ON "session_service"."receipt"("session_id");

-- CreateIndex
CREATE INDEX "receipt_at_idx" ON "session_service"."receipt"("at");

-- CreateIndex
CREATE INDEX "snapshot_agent_id_created_at_idx" ON "session_service"."snapshot"("agent_id", "created_at");

-- CreateIndex
CREATE INDEX "mapping_agent_id_at_idx" ON "session_service"."mapping"("agent_id", "at");

-- CreateIndex
CREATE UNIQUE INDEX "pool_consumer_key" ON "session_service"."pool"("consumer");

