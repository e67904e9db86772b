// AsyncAPI 3 of everything that may be said on the bus, read off the contract values and checked against AsyncAPI's own schema.
import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { z } from 'zod';
import { allContracts, platformFaults } from './contracts.mjs';

const require = createRequire(import.meta.url);

/** Collects schemas that carry an id under components, so that each stands in the document once. */
class Schemas {
  components = {};

  /** The JSON Schema of a zod schema. Objects stay open (`io: 'input'`): a reader must bear a field it does not know. */
  of(schema) {
    const {
      $schema: _schema,
      definitions = {},
      ...rest
    } = z.toJSONSchema(schema, { io: 'input', target: 'draft-07', unrepresentable: 'any' });
    for (const [id, definition] of Object.entries(definitions)) this.#keep(id, withComponentRefs(definition));
    const here = withComponentRefs(rest);
    // A schema that itself has an id arrives whole: keep it as a component and refer to it.
    if (typeof here.id !== 'string') return here;
    this.#keep(here.id, here);
    return { $ref: `#/components/schemas/${here.id}` };
  }

  #keep(id, { id: _id, ...definition }) {
    const before = this.components[id];
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(definition)) {
      throw new Error(`two different schemas have the id "${id}"; give one of them another name`);
    }
    this.components[id] = definition;
  }
}

function withComponentRefs(value) {
  if (Array.isArray(value)) return value.map(withComponentRefs);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      key === '$ref' && typeof part === 'string' ? part.replace('#/definitions/', '#/components/schemas/') : withComponentRefs(part),
    ]),
  );
}

const parametersOf = (address) => [...address.matchAll(/\{([A-Za-z]+)\}/g)].map(([, name]) => name);
const faultsOf = (contract) =>
  Object.entries({ ...contract.errors, ...platformFaults })
    .map(([code, { status, retry }]) => ({ code, status, retry }))
    .sort((a, b) => (a.code < b.code ? -1 : 1));

/** The document as an object. */
export function asyncapiDocument(version) {
  const schemas = new Schemas();
  const channels = {};
  const operations = {};
  for (const { name, contract } of allContracts()) {
    const keys = parametersOf(contract.subject);
    const isRpc = contract.kind === 'rpc';
    channels[name] = {
      address: contract.subject,
      title: contract.summary,
      ...(keys.length > 0 && { parameters: Object.fromEntries(keys.map((key) => [key, { description: `Escaped as one subject token` }])) }),
      messages: {
        message: {
          name,
          summary: contract.summary,
          contentType: 'application/json',
          payload: schemas.of(isRpc ? contract.input : contract.payload),
        },
      },
    };
    operations[name] = {
      action: isRpc ? 'receive' : 'send',
      summary: contract.summary,
      channel: { $ref: `#/channels/${name}` },
      messages: [{ $ref: `#/channels/${name}/messages/message` }],
      tags: [{ name: contract.owner }, { name: contract.kind }],
      'x-ambit-owner': contract.owner,
      ...(contract.audience !== undefined && { 'x-ambit-audience': contract.audience }),
      ...(contract.stream !== undefined && { 'x-ambit-stream': contract.stream }),
      ...(isRpc && {
        'x-ambit-idempotent': contract.idempotent,
        'x-ambit-timeout-ms': contract.timeoutMs,
        'x-ambit-faults': faultsOf(contract),
      }),
    };
    if (!isRpc) continue;
    channels[`${name}.reply`] = {
      address: null,
      title: `Answer to ${name}`,
      messages: {
        message: { name: `${name}.reply`, contentType: 'application/json', payload: schemas.of(contract.output) },
        fault: { $ref: '#/components/messages/Fault' },
      },
    };
    operations[name].reply = {
      address: { location: '$message.header#/reply', description: 'The inbox that came with the request' },
      channel: { $ref: `#/channels/${name}.reply` },
      messages: [{ $ref: `#/channels/${name}.reply/messages/message` }, { $ref: `#/channels/${name}.reply/messages/fault` }],
    };
  }
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Ambit',
      version,
      description: 'Everything that may be said on the bus: plain JSON over NATS.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    channels,
    operations,
    components: {
      messages: {
        Fault: {
          name: 'Fault',
          summary: 'A declared failure, beside the headers of ADR-32',
          headers: {
            type: 'object',
            properties: { 'Nats-Service-Error-Code': { type: 'string' }, 'Nats-Service-Error': { type: 'string' } },
          },
          payload: {
            type: 'object',
            required: ['code', 'message'],
            properties: { code: { type: 'string' }, message: { type: 'string' }, data: {} },
          },
        },
      },
      schemas: Object.fromEntries(Object.entries(schemas.components).sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

/** Throws with AsyncAPI's own complaints when the document is not valid AsyncAPI 3. */
export function validateAsyncapi(document) {
  const ajv = new Ajv({ strict: false, logger: false, validateFormats: true });
  addFormats.default(ajv);
  const schema = require('@asyncapi/specs/schemas/3.0.0-without-$id.json');
  if (ajv.validate(schema, document)) return;
  throw new Error(`docs/generated/asyncapi.json is not valid AsyncAPI 3: ${ajv.errorsText(ajv.errors, { separator: '\n  ' })}`);
}
