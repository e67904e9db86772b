-- AlterTable
ALTER TABLE "mcp_broker"."server" ADD COLUMN "refused_names" TEXT NOT NULL DEFAULT '[]';
