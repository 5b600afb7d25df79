import { formParts } from '../shared/multipart.ts';
import { badRequest } from './types.ts';

/** The parameters of one call, whether they came as JSON, form fields or a query; numbers may be strings. */
export class Params {
  readonly values: Readonly<Record<string, unknown>>;
  readonly files: ReadonlyMap<string, UploadedFile>;

  constructor(
    values: Readonly<Record<string, unknown>>,
    files: ReadonlyMap<string, UploadedFile> = new Map(),
  ) {
    this.values = values;
    this.files = files;
  }

  has(name: string): boolean {
    return this.values[name] !== undefined && this.values[name] !== '';
  }

  optionalText(name: string): string | undefined {
    const value = this.values[name];
    if (value === undefined || value === null) return undefined;
    return typeof value === 'string' ? value : String(value);
  }

  text(name: string): string {
    return this.optionalText(name) ?? '';
  }

  optionalInt(name: string): number | undefined {
    if (!this.has(name)) return undefined;
    const value = Number(this.values[name]);
    if (!Number.isSafeInteger(value)) throw badRequest(`${name} must be an Integer`);
    return value;
  }

  bool(name: string): boolean {
    const value = this.values[name];
    return value === true || value === 'true' || value === 'True' || value === '1' || value === 1;
  }

  /** Returns an object or array: as it is, or parsed from the JSON text in form fields. */
  json(name: string): unknown {
    const value = this.values[name];
    if (typeof value !== 'string') return value ?? undefined;
    if (value === '') return undefined;
    try {
      return JSON.parse(value);
    } catch {
      throw badRequest(`can't parse ${name} JSON object`);
    }
  }
}

export type UploadedFile = { readonly name: string; readonly bytes: Uint8Array };

/** Reads a request body by its content type. */
export function readParams(contentType: string, body: Buffer, query: URLSearchParams): Params {
  const fromQuery = Object.fromEntries(query);
  if (contentType.startsWith('application/json')) return new Params({ ...fromQuery, ...parseObject(body) });
  if (contentType.startsWith('multipart/form-data')) {
    const { fields, files } = parseMultipart(contentType, body);
    return new Params({ ...fromQuery, ...fields }, files);
  }
  if (contentType.startsWith('application/x-www-form-urlencoded'))
    return new Params({ ...fromQuery, ...Object.fromEntries(new URLSearchParams(body.toString())) });
  return new Params(fromQuery);
}

function parseObject(body: Buffer): Record<string, unknown> {
  if (body.length === 0) return {};
  try {
    const value: unknown = JSON.parse(body.toString());
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Falls through to the platform's own refusal.
  }
  throw badRequest("can't parse JSON object");
}

function parseMultipart(contentType: string, body: Buffer) {
  const parts = formParts(contentType, body);
  if (parts === undefined) throw badRequest('multipart boundary is missing');
  const fields: Record<string, string> = {};
  const files = new Map<string, UploadedFile>();
  for (const { head, content, fileName } of parts) {
    const name = /name="?([^";\r\n]+)"?/i.exec(head)?.[1];
    if (name === undefined) throw badRequest('multipart part has no name');
    if (fileName === undefined) fields[name] = content.toString();
    else files.set(name, { name: fileName, bytes: new Uint8Array(content) });
  }
  return { fields, files };
}
