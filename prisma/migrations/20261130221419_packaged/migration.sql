-- AlterTable
ALTER TABLE "mcp_broker"."server" ADD COLUMN "packaged" TEXT;
