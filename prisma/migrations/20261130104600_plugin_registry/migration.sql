
-- CreateTable
CREATE TABLE "plugin_registry"."blob" (
    "digest" TEXT NOT NULL,
    "bytes" INTEGER NOT NULL,
    "have" INTEGER NOT NULL DEFAULT 0,
    "complete" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "blob_pkey" PRIMARY KEY ("digest")
);

-- CreateTable
CREATE TABLE "plugin_registry"."blob_chunk" (
    "digest" TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    "data" BYTEA NOT NULL,

    CONSTRAINT "blob_chunk_pkey" PRIMARY KEY ("digest","offset")
);

-- CreateTable
CREATE TABLE "plugin_registry"."package" (
    "digest" TEXT NOT NULL,
    "format" TEXT NOT NULL DEFAULT 'ambit.plugin-package.v1',
    "tree" JSONB NOT NULL,
    "manifest" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "package_pkey" PRIMARY KEY ("digest")
);

-- CreateTable
CREATE TABLE "plugin_registry"."installation" (
    "id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "wanted" TEXT NOT NULL,
    "reason" TEXT,
    "contributes" JSONB NOT NULL,
    "epoch" BIGINT NOT NULL,
    "fence" BIGINT NOT NULL,
    "revoked_fence" BIGINT NOT NULL,
    "set" TEXT,
    "revision" INTEGER NOT NULL DEFAULT 1,
    "operation" TEXT,
    "operation_until" TIMESTAMPTZ(3),
    "installed_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "installation_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "installation_project_id_idx" ON "plugin_registry"."installation"("project_id");

-- AddForeignKey
ALTER TABLE "plugin_registry"."blob_chunk" ADD CONSTRAINT "blob_chunk_digest_fkey" FOREIGN KEY ("digest") REFERENCES "plugin_registry"."blob"("digest") ON DELETE CASCADE ON UPDATE CASCADE;

