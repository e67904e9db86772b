-- Who may talk to MCP servers that ask for credentials: tokens, sign-ins under way, and lists that belong to one subject.

-- AlterTable
ALTER TABLE "mcp_broker"."catalogue" DROP CONSTRAINT "catalogue_pkey",
ADD COLUMN     "generation" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "subject" TEXT NOT NULL DEFAULT 'shared',
ADD CONSTRAINT "catalogue_pkey" PRIMARY KEY ("server_id", "subject");

-- AlterTable
ALTER TABLE "mcp_broker"."instance" ADD COLUMN     "subject" TEXT NOT NULL DEFAULT 'shared';

-- CreateTable
CREATE TABLE "mcp_broker"."challenge" (
    "server_id" UUID NOT NULL,
    "generation" INTEGER NOT NULL,
    "state" TEXT NOT NULL,
    "reason" TEXT,
    "resource_metadata_url" TEXT,
    "scope" TEXT,
    "issuer" TEXT,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "challenge_pkey" PRIMARY KEY ("server_id")
);

-- CreateTable
CREATE TABLE "mcp_broker"."credential" (
    "server_id" UUID NOT NULL,
    "subject" TEXT NOT NULL,
    "generation" INTEGER NOT NULL,
    "binding_hash" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "issuer" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "reason" TEXT,
    "scope" TEXT,
    "wanted_scope" TEXT,
    "sealed" BYTEA,
    "key_id" TEXT,
    "obtained_at" TIMESTAMPTZ(3),
    "refresh_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL,
    "lease_holder" TEXT,
    "lease_until" TIMESTAMPTZ(3),
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "credential_pkey" PRIMARY KEY ("server_id","subject")
);

-- CreateTable
CREATE TABLE "mcp_broker"."flow" (
    "server_id" UUID NOT NULL,
    "subject" TEXT NOT NULL,
    "state_hash" TEXT NOT NULL,
    "generation" INTEGER NOT NULL,
    "binding_hash" TEXT NOT NULL,
    "sealed" BYTEA NOT NULL,
    "key_id" TEXT NOT NULL,
    "interaction" UUID,
    "used_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "flow_pkey" PRIMARY KEY ("server_id","subject")
);

-- CreateTable
CREATE TABLE "mcp_broker"."client" (
    "server_id" UUID NOT NULL,
    "issuer" TEXT NOT NULL,
    "redirect" TEXT NOT NULL,
    "sealed" BYTEA NOT NULL,
    "key_id" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "client_pkey" PRIMARY KEY ("server_id","issuer","redirect")
);

-- CreateIndex
CREATE INDEX "credential_subject_idx" ON "mcp_broker"."credential"("subject");

-- CreateIndex
CREATE UNIQUE INDEX "flow_state_hash_key" ON "mcp_broker"."flow"("state_hash");

-- CreateIndex
CREATE INDEX "flow_subject_idx" ON "mcp_broker"."flow"("subject");

-- AddForeignKey
ALTER TABLE "mcp_broker"."challenge" ADD CONSTRAINT "challenge_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_broker"."credential" ADD CONSTRAINT "credential_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_broker"."flow" ADD CONSTRAINT "flow_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_broker"."client" ADD CONSTRAINT "client_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;

