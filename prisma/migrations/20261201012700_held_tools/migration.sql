-- AlterTable
ALTER TABLE "mcp_broker"."server" ADD COLUMN     "accepted_tools" TEXT NOT NULL DEFAULT '{}',
ADD COLUMN     "held_tools" TEXT NOT NULL DEFAULT '[]';
