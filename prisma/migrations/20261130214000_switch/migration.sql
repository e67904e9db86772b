
-- CreateTable
CREATE TABLE "mcp_broker"."switch" (
    "name" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL,

    CONSTRAINT "switch_pkey" PRIMARY KEY ("name")
);

