
-- CreateTable
CREATE TABLE "session_service"."deleted_agent" (
    "id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "deleted_agent_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "skill_store"."removed_scope" (
    "agent_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "removals" INTEGER NOT NULL,

    CONSTRAINT "removed_scope_pkey" PRIMARY KEY ("agent_id")
);

-- CreateTable
CREATE TABLE "skill_store"."buried" (
    "agent_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "digest" TEXT NOT NULL,

    CONSTRAINT "buried_pkey" PRIMARY KEY ("agent_id","name","digest")
);

