/**
 * The API's description, OpenAPI 3.1. It is built from the entries of the routes themselves, whose schemas check the
 * input and bound the output; the server doesn't start with a route that has no entry.
 */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import { type ApiCall, keyHeader, refusalStatus, serveCall } from './api-call.ts';
import { changeHeader } from './request-guard.ts';

export type ApiDocumentDeps = {
  readonly version?: string | undefined;
  readonly cookieName: () => string;
};

const description = {
  method: 'GET',
  path: '/openapi.json',
  summary: 'Describes the API: this document',
  access: 'owner',
  scope: 'read',
  answer: z.looseObject({ openapi: z.string() }),
} as const;

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Collects the entries of all routes added after this call, and serves them as one document. Throws `internal` for a
 * route without an entry.
 */
export function describeApi(app: FastifyInstance, deps: ApiDocumentDeps): void {
  const calls: ApiCall[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    // The server adds one for each GET.
    if (method === 'HEAD') return;
    if (config?.call === undefined)
      throw new ParleyError('internal', `${method} ${url} isn't described: give its route a \`call\`.`);
    if (config.call !== 'none') calls.push(config.call);
  });
  let document: z.infer<typeof description.answer> | undefined;
  app.register(async (scope) => {
    serveCall(scope, description, async () => {
      document ??= documentOf(calls, deps);
      return document;
    });
  });
}

function documentOf(calls: readonly ApiCall[], { version = '', cookieName }: ApiDocumentDeps) {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const call of calls) {
    const path = call.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [call.method.toLowerCase()]: operationOf(call) };
  }
  const schemas = Object.assign({}, ...calls.map(({ frames }) => frames && framesOf(frames)));
  return {
    openapi: '3.1.0',
    info: { title: 'Parley', version, description: 'Times are ms since the epoch unless stated otherwise.' },
    security: [{ token: [] }, { cookie: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: tokens },
        cookie: { type: 'apiKey', in: 'cookie', name: cookieName(), description: 'Of a signed-in browser' },
      },
      parameters: { change: changing, once },
      responses: { refusal: jsonBody('Refused; `code` says why', refusal) },
      schemas,
    },
  };
}

const tokens =
  'The access token, or a token that has the scope named by `x-scope`; calls without one need the access token.';

const changing = {
  ...{ name: changeHeader, in: 'header', required: true, schema: { type: 'string' } },
  description: "Any value. Pages of other origins can't send it.",
};

const once = {
  ...{ name: keyHeader, in: 'header', required: false, schema: { type: 'string', maxLength: 200 } },
  description:
    'The same call under the same key counts once for a week and gets the first answer, also when that was lost. Another call under it is refused with `key_reused`.',
};

const refusal = z.object({
  error: z.object({ code: z.string(), text: z.string().exactOptional().describe('For people') }),
});

function operationOf(call: ApiCall): JsonObject {
  const { method, summary, access, scope, input } = call;
  const isChange = method === 'POST';
  return {
    summary,
    ...securityOf(access),
    ...(scope && { 'x-scope': scope }),
    parameters: [
      ...[...call.path.matchAll(/:(\w+)/g)].map(([, name]) => ({ ...inPath, name })),
      ...(isChange ? changeOf(access) : queryOf(input)),
      ...(call.takesKey === true ? [{ $ref: '#/components/parameters/once' }] : []),
    ],
    ...(isChange && input && { requestBody: { required: true, ...contentOf(jsonType, input, 'input') } }),
    responses: {
      ...answersOf(call),
      ...refusalsOf(call),
      default: { $ref: '#/components/responses/refusal' },
    },
  };
}

/** A program's call needs no header, since only its token counts. */
function changeOf(access: ApiCall['access']): readonly JsonObject[] {
  return access === 'program' ? [] : [{ $ref: '#/components/parameters/change' }];
}

/** The document's own `security` applies to what any owner may call. */
function securityOf(access: ApiCall['access']): JsonObject {
  switch (access) {
    case 'public':
      return { security: [] };
    case 'operator':
    case 'program':
      return { security: [{ token: [] }] };
    case 'owner':
      return {};
    default:
      return access satisfies never;
  }
}

const inPath = { in: 'path', required: true, schema: { type: 'string' } };

function queryOf(input: z.ZodType | undefined): readonly JsonObject[] {
  const { properties = {}, required = [] } = input ? jsonSchemaOf(input, 'input') : {};
  return Object.entries(properties).map(([name, schema]) => ({
    ...{ name, in: 'query', required: required.includes(name), schema },
  }));
}

function answersOf({ frames, answer, answerType = jsonType, alsoWith = [] }: ApiCall): JsonObject {
  if (frames)
    return { 101: { description: 'A WebSocket: clients send ClientFrame and receive ServerFrame' } };
  if (!answer) return { 204: { description: 'Done' } };
  const body = { description: 'The answer', ...contentOf(answerType, answer, 'output') };
  return Object.fromEntries([200, ...alsoWith].map((status) => [status, body]));
}

function refusalsOf({ refusals = [] }: ApiCall): JsonObject {
  const byStatus = Map.groupBy(refusals, (code) => refusalStatus[code]);
  const described = [...byStatus].map(([status, codes]) => [
    status,
    jsonBody(codes.map((code) => `\`${code}\``).join(', '), refusal),
  ]);
  return Object.fromEntries(described);
}

function framesOf({ client, server }: NonNullable<ApiCall['frames']>): JsonObject {
  return { ClientFrame: jsonSchemaOf(client, 'input'), ServerFrame: jsonSchemaOf(server, 'output') };
}

const jsonType = 'application/json';

function jsonBody(description: string, schema: z.ZodType): JsonObject {
  return { description, ...contentOf(jsonType, schema, 'output') };
}

function contentOf(type: string, schema: z.ZodType, io: 'input' | 'output'): JsonObject {
  return { content: { [type]: { schema: jsonSchemaOf(schema, io) } } };
}

function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const override = ({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }) => {
    // Zod sets it for readonly arrays, which is a matter of our types only.
    delete jsonSchema.readOnly;
    // A later version may return more members.
    if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  };
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, override });
  return described;
}
