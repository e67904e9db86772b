-- Deferred tools that a session sees whole, by name.
ALTER TABLE "session_service"."session" ADD COLUMN     "loaded_tools" TEXT[] DEFAULT ARRAY[]::TEXT[];
