/**
 * The part of the project's own swagger document that this server answers (`swagger.json`: paths with the
 * schemas of bodies and answers, nothing else changed), and a check against it.
 *
 * Where the document is known to be wrong:
 *  - /v2/send: newer releases answer with an array whose entries may have `errors`; 429 is missing;
 *    every refusal is documented with `account`, but only a 429 has it.
 *  - GET /v1/receive: one message is documented, but an array is sent, as text/plain.
 *  - GET /v1/groups with `expand=true`: members are objects, not strings.
 *  - 404 and 500 are missing for attachments, groups and accounts.
 *  - signal-cli prints null where a field of an envelope is unknown; the document has no nulls. A message
 *    that can't be read has an `exception`, and a sync message has its edit in `sentMessage`.
 */
import { readFileSync } from 'node:fs';

type Schema = {
  readonly $ref?: string;
  readonly type?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
};
type Operation = { readonly body?: Schema; readonly responses: Readonly<Record<string, Schema>> };
type Swagger = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly definitions: Readonly<Record<string, Schema>>;
};

const swagger = JSON.parse(readFileSync(new URL('swagger.json', import.meta.url), 'utf8')) as Swagger;

export const describedPaths: readonly string[] = Object.entries(swagger.paths).flatMap(([path, operations]) =>
  Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
);

/** Returns what the document says about a call. `path` is written as in the document. */
export function operationOf(method: string, path: string): Operation {
  const operation = swagger.paths[path]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`the swagger document has no ${method} ${path}`);
  return operation;
}

/** Lists where `value` doesn't match the definition of that name. Null matches if `mayBeNull`. */
export function misfits(value: unknown, name: string, mayBeNull = false): readonly string[] {
  return compare(value, { $ref: name }, name, mayBeNull);
}

export function misfitsOf(value: unknown, schema: Schema, mayBeNull = false): readonly string[] {
  return compare(value, schema, '$', mayBeNull);
}

/** Fields that the document doesn't know are misfits as well. */
function compare(value: unknown, schema: Schema, at: string, mayBeNull: boolean): readonly string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    const known = swagger.definitions[name];
    if (known === undefined) throw new Error(`the swagger document has no definition ${name}`);
    return compare(value, known, at, mayBeNull);
  }
  if (value === null && mayBeNull) return [];
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${at}: ${JSON.stringify(value)} is none of ${schema.enum.join(', ')}`];
  switch (schema.type) {
    case 'array':
      if (!Array.isArray(value)) return [`${at}: no array`];
      return value.flatMap((one: unknown, index) =>
        compare(one, schema.items ?? {}, `${at}[${index}]`, mayBeNull),
      );
    case 'object':
      return compareObject(value, schema, at, mayBeNull);
    case 'integer':
      return Number.isSafeInteger(value) ? [] : [`${at}: ${JSON.stringify(value)} is no integer`];
    case 'string':
    case 'boolean':
      return typeof value === schema.type ? [] : [`${at}: ${JSON.stringify(value)} is no ${schema.type}`];
    default:
      return [];
  }
}

function compareObject(value: unknown, schema: Schema, at: string, mayBeNull: boolean): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: no object`];
  const { properties = {}, required = [], additionalProperties } = schema;
  const missing = required.filter((field) => !(field in value)).map((field) => `${at}.${field}: missing`);
  const isOpen = schema.properties === undefined && additionalProperties === undefined;
  const found = Object.entries(value).flatMap(([field, one]) => {
    const known =
      properties[field] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    if (known === undefined) return isOpen ? [] : [`${at}.${field}: unknown`];
    return compare(one, known, `${at}.${field}`, mayBeNull);
  });
  return [...missing, ...found];
}
