/** A request that the platform would refuse. Thrown while the request is checked, and answered as JSON. */
export class Refusal extends Error {
  readonly status: number;
  readonly type: string;

  constructor(message: string, kind: { status: number; type: string } = invalidRequest) {
    super(message);
    this.status = kind.status;
    this.type = kind.type;
  }
}

const invalidRequest = { status: 400, type: 'invalid_request_error' };

/** Returns the platform's error type for an HTTP status. */
export function errorTypeOf(status: number): string {
  const known: Record<number, string> = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    402: 'billing_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    504: 'timeout_error',
    529: 'overloaded_error',
  };
  return known[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

export function errorBody(type: string, message: string, requestId: string): string {
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: requestId });
}

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asObject(value: unknown, path: string): Json {
  if (!isObject(value)) throw new Refusal(`${path}: Input should be a valid dictionary`);
  return value;
}

export function asArray(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Refusal(`${path}: Input should be a valid list`);
  return value;
}

export function asText(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new Refusal(`${path}: Input should be a valid string`);
  return value;
}

export function asInteger(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new Refusal(`${path}: Input should be a valid integer`);
  }
  return value;
}

/** Refuses fields that the platform doesn't know, and missing required ones. */
export function checkFields(
  value: Json,
  path: string,
  fields: { required: readonly string[]; optional?: readonly string[] },
): void {
  const prefix = path === '' ? '' : `${path}.`;
  for (const name of fields.required) {
    if (value[name] === undefined) throw new Refusal(`${prefix}${name}: Field required`);
  }
  for (const name of Object.keys(value)) {
    if (!fields.required.includes(name) && !fields.optional?.includes(name)) {
      throw new Refusal(`${prefix}${name}: Extra inputs are not permitted`);
    }
  }
}
