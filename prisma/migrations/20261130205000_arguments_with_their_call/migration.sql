-- What a call was given stands in its own row: what takes the row's words away cannot miss them.
ALTER TABLE "tool_gateway"."call" ADD COLUMN "arguments_preview" TEXT;
UPDATE "tool_gateway"."call" c SET "arguments_preview" = a."preview" FROM "tool_gateway"."call_arguments" a WHERE a."operation_id" = c."operation_id";
DROP TABLE "tool_gateway"."call_arguments";

-- Principals and sessions whose words were erased: what is written later of calls that were made before carries none.
CREATE TABLE "tool_gateway"."erased" (
    "subject" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "erased_pkey" PRIMARY KEY ("subject")
);
