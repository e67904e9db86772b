
-- CreateTable
CREATE TABLE "skill_store"."blob" (
    "digest" TEXT NOT NULL,
    "bytes" INTEGER NOT NULL,
    "have" INTEGER NOT NULL DEFAULT 0,
    "complete" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "blob_pkey" PRIMARY KEY ("digest")
);

-- CreateTable
CREATE TABLE "skill_store"."blob_chunk" (
    "digest" TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    "data" BYTEA NOT NULL,

    CONSTRAINT "blob_chunk_pkey" PRIMARY KEY ("digest","offset")
);

-- CreateTable
CREATE TABLE "skill_store"."version" (
    "digest" TEXT NOT NULL,
    "format" TEXT NOT NULL DEFAULT 'ambit.skill-version.v1',
    "tree" JSONB NOT NULL,
    "facts" JSONB,
    "valid" BOOLEAN NOT NULL,
    "warnings" JSONB NOT NULL,
    "files" INTEGER NOT NULL,
    "bytes" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "version_pkey" PRIMARY KEY ("digest")
);

-- CreateTable
CREATE TABLE "skill_store"."entry" (
    "agent_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "source" TEXT NOT NULL,
    "set" TEXT,
    "folder" TEXT,
    "version" INTEGER NOT NULL DEFAULT 1,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "entry_pkey" PRIMARY KEY ("agent_id","name")
);

-- CreateTable
CREATE TABLE "skill_store"."contribution" (
    "owner" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "contribution_pkey" PRIMARY KEY ("owner","name")
);

-- CreateTable
CREATE TABLE "skill_store"."epoch" (
    "scope" TEXT NOT NULL,
    "epoch" BIGINT NOT NULL,

    CONSTRAINT "epoch_pkey" PRIMARY KEY ("scope")
);

-- CreateIndex
CREATE INDEX "entry_project_id_idx" ON "skill_store"."entry"("project_id");

-- CreateIndex
CREATE UNIQUE INDEX "contribution_name_key" ON "skill_store"."contribution"("name");

-- AddForeignKey
ALTER TABLE "skill_store"."blob_chunk" ADD CONSTRAINT "blob_chunk_digest_fkey" FOREIGN KEY ("digest") REFERENCES "skill_store"."blob"("digest") ON DELETE CASCADE ON UPDATE CASCADE;

