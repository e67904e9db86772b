-- That a person switched a server off, whatever its configuration or its plugin says.
ALTER TABLE "mcp_broker"."server" ADD COLUMN     "switched_off" BOOLEAN NOT NULL DEFAULT false;

-- The same of servers that their owner took away for a while.
CREATE TABLE "mcp_broker"."switched_off" (
    "project_id" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "owner" TEXT NOT NULL,

    CONSTRAINT "switched_off_pkey" PRIMARY KEY ("project_id","slug","owner")
);
