-- AlterTable
ALTER TABLE "session_service"."run_step" ADD COLUMN     "cut" BOOLEAN NOT NULL DEFAULT false;
