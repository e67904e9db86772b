-- CreateTable
CREATE TABLE "admin_api"."lost_record" (
    "owner" TEXT NOT NULL,
    "sequence" BIGINT NOT NULL,
    "record" JSONB NOT NULL,

    CONSTRAINT "lost_record_pkey" PRIMARY KEY ("owner","sequence")
);

