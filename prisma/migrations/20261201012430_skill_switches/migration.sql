-- What of skills is switched for everybody.
CREATE TABLE "skill_store"."switch" (
    "name" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,

    CONSTRAINT "switch_pkey" PRIMARY KEY ("name")
);

-- Skills of folders that a person switched off and that went away since.
CREATE TABLE "skill_store"."switched_off" (
    "agent_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,

    CONSTRAINT "switched_off_pkey" PRIMARY KEY ("agent_id","name")
);
