import { httpApi, jsonSchemaOf, platformFaults, type FaultMap, type HttpRoute } from '@ambit/contracts';
import { z } from 'zod';

/** The OpenAPI 3.1 document of the routes. */
export function openapiDocument(about: { readonly version: string }): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [operationId, route] of Object.entries<HttpRoute>(httpApi)) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = operation(operationId, route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ambit',
      version: about.version,
      description: 'The capability plane for AI agents: what each run of each agent may see and do.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: {
        Problem: {
          type: 'object',
          required: ['type', 'title', 'status', 'code'],
          properties: {
            type: { type: 'string' },
            title: { type: 'string' },
            status: { type: 'integer' },
            detail: { type: 'string' },
            code: { type: 'string' },
            retry: { enum: ['never', 'later'] },
            traceId: { type: 'string' },
            data: {},
          },
        },
      },
    },
  };
}

function operation(operationId: string, route: HttpRoute): Readonly<Record<string, unknown>> {
  const [, , noun = ''] = route.path.split('/');
  return {
    operationId,
    summary: route.summary,
    tags: [noun],
    description: `Needs a role that may \`${route.action}\`.`,
    parameters: [
      ...parameters(route.params, 'path'),
      ...parameters(route.query, 'query'),
      ...(operationId === 'postMessage'
        ? [{ name: 'Idempotency-Key', in: 'header', required: true, schema: { type: 'string', maxLength: 200 } }]
        : []),
    ],
    ...(route.body instanceof z.ZodUndefined
      ? {}
      : {
          requestBody: {
            required: !(route.body instanceof z.ZodOptional),
            content: { 'application/json': { schema: jsonSchemaOf(route.body) } },
          },
        }),
    responses: {
      [String(route.status)]: {
        description: 'Done',
        content: contentOf(route),
      },
      ...problems({ ...platformFaults, ...route.errors }),
    },
  };
}

/** Events that end with the answer carry more than one shape, so their form alone is said. */
function contentOf(route: HttpRoute): Readonly<Record<string, unknown>> {
  const schema = jsonSchemaOf(route.output);
  if (route.answers === 'stream') return { 'text/event-stream': { schema } };
  return {
    'application/json': { schema },
    ...(route.answers === 'progress' ? { 'text/event-stream': { schema: { type: 'string' } } } : {}),
  };
}

function parameters(schema: z.ZodObject, place: 'path' | 'query'): Readonly<Record<string, unknown>>[] {
  return Object.entries(schema.shape).map(([name, field]) => ({
    name,
    in: place,
    required: place === 'path' || !field.safeParse(undefined).success,
    schema: jsonSchemaOf(field),
  }));
}

/** Faults by their status; an answer's `code` tells those of one status apart. */
function problems(errors: FaultMap): Readonly<Record<string, unknown>> {
  const byStatus = new Map<string, string[]>();
  for (const [code, def] of Object.entries(errors))
    byStatus.set(String(def.status), [...(byStatus.get(String(def.status)) ?? []), `\`${code}\`: ${def.message}`]);
  return Object.fromEntries(
    [...byStatus].map(([status, lines]) => [
      status,
      { description: lines.join('\n\n'), content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } },
    ]),
  );
}
