-- Whoever asked waits for the decision while its run goes on: no call is executed by it, and no run resumes by it.
ALTER TABLE "session_service"."interaction" ADD COLUMN "is_live" BOOLEAN NOT NULL DEFAULT false;
