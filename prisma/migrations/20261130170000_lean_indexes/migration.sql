-- A chain's records are found by their sequence; nothing looks for a hash.
DROP INDEX "admin_api"."audit_hash_key";
DROP INDEX "mcp_broker"."audit_hash_key";
DROP INDEX "plugin_registry"."audit_hash_key";
DROP INDEX "session_service"."audit_hash_key";
DROP INDEX "skill_store"."audit_hash_key";
DROP INDEX "tool_gateway"."audit_hash_key";

-- Almost every call has ended and is not parked: only the others are looked for by how they stand. Prisma's schema cannot say so.
DROP INDEX "tool_gateway"."call_status_idx";
DROP INDEX "tool_gateway"."call_is_parked_idx";
CREATE INDEX "call_unended_idx" ON "tool_gateway"."call"("claimed_at") WHERE "status" IN ('running', 'aborting');
CREATE INDEX "call_parked_idx" ON "tool_gateway"."call"("claimed_at" DESC, "operation_id" DESC) WHERE "is_parked";
