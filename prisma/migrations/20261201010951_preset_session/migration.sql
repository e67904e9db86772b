-- Of a preset’s session: globs of the tools that it sees; absent where that is all.
ALTER TABLE "session_service"."session" ADD COLUMN     "slot_tools" JSONB;
