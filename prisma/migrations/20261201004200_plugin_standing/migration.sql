-- AlterTable
ALTER TABLE "plugin_registry"."installation" ADD COLUMN     "quarantined" TEXT,
ADD COLUMN     "unfinished" INTEGER NOT NULL DEFAULT 0;
