import { BoundedMap, digestOf, type SnapshotTool } from '@ambit/capability';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Options, ValidateFunction } from 'ajv';

const MAX_SCHEMAS = 5_000;
const OPTIONS: Options = {
  strict: false,
  allErrors: false,
  validateFormats: false,
  logger: false,
  addUsedSchema: false,
  ownProperties: true,
};

type Check = (input: Readonly<Record<string, unknown>>) => readonly string[];

/** Compiled input schemas, made when a tool is first called and shared by every snapshot that has the same schema. */
@Injectable()
export class SchemaValidators {
  readonly #byTool = new WeakMap<SnapshotTool, Check>();
  readonly #bySchema = new BoundedMap<string, Check>(MAX_SCHEMAS);

  constructor(@Inject(LOG) private readonly log: Logger) {}

  /** What is wrong with arguments; nothing, where the schema itself cannot be read: its server checks again. */
  readonly problems = (tool: SnapshotTool, input: Readonly<Record<string, unknown>>): readonly string[] => {
    let check = this.#byTool.get(tool);
    if (check === undefined) {
      check = this.#check(tool);
      this.#byTool.set(tool, check);
    }
    return check(input);
  };

  #check(tool: SnapshotTool): Check {
    const key = digestOf(tool.inputSchema);
    const known = this.#bySchema.get(key);
    if (known !== undefined) return known;
    const check = this.#compile(tool);
    this.#bySchema.set(key, check);
    return check;
  }

  #compile(tool: SnapshotTool): Check {
    let validate: ValidateFunction;
    try {
      const dialect = String(tool.inputSchema['$schema'] ?? '');
      // A compiler for each schema: one keeps every schema it has seen, and two servers may use the same $id.
      validate = (/draft-0[4-7]/.test(dialect) ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS)).compile(tool.inputSchema);
    } catch (error) {
      this.log.warn({ error, tool: tool.name }, 'a tool’s input schema cannot be compiled; its arguments are checked by its owner alone');
      return () => [];
    }
    return (input) =>
      validate(input)
        ? []
        : (validate.errors ?? []).map(
            (one) => `${one.instancePath === '' ? 'the arguments' : one.instancePath}: ${one.message ?? 'wrong'}`,
          );
  }
}
