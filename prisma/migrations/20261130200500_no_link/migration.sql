-- Where a decision is taken follows from its id: its owner says so, each time that it is told of.
ALTER TABLE "admin_api"."notify_delivery" DROP COLUMN "link";
