
-- AlterTable
ALTER TABLE "mcp_broker"."server" ADD COLUMN     "offers" TEXT NOT NULL DEFAULT '{}';

-- CreateTable
CREATE TABLE "mcp_broker"."offers" (
    "server_id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "items" TEXT NOT NULL,
    "read_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "offers_pkey" PRIMARY KEY ("server_id","kind")
);

-- AddForeignKey
ALTER TABLE "mcp_broker"."offers" ADD CONSTRAINT "offers_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;

