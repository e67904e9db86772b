
-- CreateTable
CREATE TABLE "skill_store"."script" (
    "agent_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "enabled_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "script_pkey" PRIMARY KEY ("agent_id","name","path")
);

