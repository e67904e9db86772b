-- CreateTable
CREATE TABLE "admin_api"."notify_sink" (
    "id" UUID NOT NULL,
    "project_id" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT[],
    "secret" TEXT NOT NULL,
    "set" TEXT,
    "version" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "notify_sink_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "admin_api"."notify_delivery" (
    "id" BIGSERIAL NOT NULL,
    "sink_id" UUID NOT NULL,
    "event_id" TEXT NOT NULL,
    "event" TEXT NOT NULL,
    "about" TEXT NOT NULL,
    "link" TEXT,
    "occurred_at" TIMESTAMPTZ(3) NOT NULL,
    "status" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "last_error" TEXT,
    "claim" UUID,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "notify_delivery_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "notify_sink_project_id_url_key" ON "admin_api"."notify_sink"("project_id", "url");

-- CreateIndex
CREATE INDEX "notify_delivery_sink_id_id_idx" ON "admin_api"."notify_delivery"("sink_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "notify_delivery_sink_id_event_id_key" ON "admin_api"."notify_delivery"("sink_id", "event_id");

-- AddForeignKey
ALTER TABLE "admin_api"."notify_delivery" ADD CONSTRAINT "notify_delivery_sink_id_fkey" FOREIGN KEY ("sink_id") REFERENCES "admin_api"."notify_sink"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Almost every delivery has ended: only the others are looked for by when they are due. Prisma's schema cannot say so.
CREATE INDEX "notify_delivery_due_idx" ON "admin_api"."notify_delivery"("sink_id", "due_at") WHERE "status" = 'pending';
