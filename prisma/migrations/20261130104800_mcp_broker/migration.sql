-- CreateTable
CREATE TABLE "mcp_broker"."server" (
    "id" UUID NOT NULL,
    "project_id" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "set" TEXT,
    "enabled" BOOLEAN NOT NULL,
    "spec" TEXT NOT NULL,
    "config_generation" INTEGER NOT NULL,
    "binding_hash" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "state" TEXT NOT NULL,
    "reason" TEXT,
    "runs_as" TEXT,
    "protocol" TEXT,
    "era" JSONB,
    "catalog_hash" TEXT,
    "catalog_of" INTEGER,
    "tools" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "server_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "mcp_broker"."catalogue" (
    "server_id" UUID NOT NULL,
    "catalog_hash" TEXT NOT NULL,
    "tools" TEXT NOT NULL,
    "read_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "catalogue_pkey" PRIMARY KEY ("server_id")
);

-- CreateTable
CREATE TABLE "mcp_broker"."instance" (
    "instance_id" TEXT NOT NULL,
    "server_id" UUID NOT NULL,
    "generation" INTEGER NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "instance_pkey" PRIMARY KEY ("instance_id")
);

-- CreateTable
CREATE TABLE "mcp_broker"."secret" (
    "project_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "from" TEXT NOT NULL,
    "key" TEXT,
    "sealed" BYTEA,
    "key_id" TEXT,
    "set" TEXT,
    "version" INTEGER NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "secret_pkey" PRIMARY KEY ("project_id","name")
);

-- CreateTable
CREATE TABLE "mcp_broker"."owner" (
    "owner" TEXT NOT NULL,
    "epoch" BIGINT NOT NULL,
    "fence" BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT "owner_pkey" PRIMARY KEY ("owner")
);

-- CreateIndex
CREATE INDEX "server_owner_idx" ON "mcp_broker"."server"("owner");

-- CreateIndex
CREATE UNIQUE INDEX "server_project_id_slug_key" ON "mcp_broker"."server"("project_id", "slug");

-- CreateIndex
CREATE INDEX "instance_server_id_idx" ON "mcp_broker"."instance"("server_id");

-- AddForeignKey
ALTER TABLE "mcp_broker"."catalogue" ADD CONSTRAINT "catalogue_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_broker"."instance" ADD CONSTRAINT "instance_server_id_fkey" FOREIGN KEY ("server_id") REFERENCES "mcp_broker"."server"("id") ON DELETE CASCADE ON UPDATE CASCADE;
