
-- AlterTable
ALTER TABLE "session_service"."session" ADD COLUMN     "slot" TEXT;

-- AlterTable
ALTER TABLE "session_service"."run" ADD COLUMN     "degraded" TEXT[];

-- CreateTable
CREATE TABLE "session_service"."draft" (
    "id" UUID NOT NULL,
    "principal_id" TEXT NOT NULL,
    "actor_id" TEXT,
    "agent_id" TEXT NOT NULL,
    "opening" JSONB NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "owners" JSONB NOT NULL,
    "degraded" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "draft_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."delegation" (
    "id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "run_id" UUID NOT NULL,
    "origin_run_id" UUID NOT NULL,
    "operation_id" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "background" BOOLEAN NOT NULL,
    "status" TEXT NOT NULL,
    "principal" JSONB NOT NULL,
    "roles" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "deadline_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "delegation_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_service"."delegation_task" (
    "delegation_id" UUID NOT NULL,
    "index" INTEGER NOT NULL,
    "slot_id" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "title" TEXT NOT NULL,
    "prompt" TEXT NOT NULL,
    "expected_output" TEXT,
    "status" TEXT NOT NULL,
    "session_id" UUID,
    "result" TEXT,
    "fault" JSONB,

    CONSTRAINT "delegation_task_pkey" PRIMARY KEY ("delegation_id","index")
);

-- CreateTable
CREATE TABLE "session_service"."aftercare" (
    "id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "whole" BOOLEAN NOT NULL,
    "runs" JSONB NOT NULL,
    "fingerprints" TEXT[],
    "by" JSONB,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "aftercare_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "draft_expires_at_idx" ON "session_service"."draft"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "delegation_operation_id_key" ON "session_service"."delegation"("operation_id");

-- CreateIndex
CREATE INDEX "delegation_session_id_created_at_idx" ON "session_service"."delegation"("session_id", "created_at");

-- CreateIndex
CREATE INDEX "delegation_origin_run_id_idx" ON "session_service"."delegation"("origin_run_id");

-- CreateIndex
CREATE INDEX "delegation_status_deadline_at_idx" ON "session_service"."delegation"("status", "deadline_at");

-- CreateIndex
CREATE UNIQUE INDEX "delegation_task_session_id_key" ON "session_service"."delegation_task"("session_id");

-- CreateIndex
CREATE INDEX "aftercare_at_idx" ON "session_service"."aftercare"("at");

