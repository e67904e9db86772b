
-- AlterTable
ALTER TABLE "session_service"."interaction" ADD COLUMN     "asked_back" TEXT;

