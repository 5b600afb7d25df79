import { formParts } from '../shared/multipart.ts';
import { invalidForm, refuse } from './errors.ts';
import type { Wire } from './types.ts';

export type UploadedFile = {
  /** The number in `files[0]`. */
  readonly key: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
};

export type Body = {
  readonly values: Wire;
  readonly list: readonly unknown[];
  readonly files: readonly UploadedFile[];
};

const mib = 1024 * 1024;
const limits = { request: 25 * mib, file: 10 * mib, files: 10 };

/** Reads a request body by its content type. `list` is set when the JSON is a list. */
export function readBody(contentType: string, raw: Buffer): Body {
  if (raw.length > limits.request) throw refuse('tooLarge');
  if (contentType.startsWith('multipart/form-data')) return readMultipart(contentType, raw);
  if (raw.length === 0) return { values: {}, list: [], files: [] };
  if (!contentType.startsWith('application/json'))
    throw invalidForm(
      '',
      'CONTENT_TYPE_INVALID',
      'Expected "Content-Type" header to be one of {\'application/json\'}.',
    );
  const value = parseJson(raw.toString());
  if (Array.isArray(value)) return { values: {}, list: value, files: [] };
  if (typeof value !== 'object' || value === null) throw refuse('invalidJson');
  return { values: value as Wire, list: [], files: [] };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refuse('invalidJson');
  }
}

function readMultipart(contentType: string, raw: Buffer): Body {
  const parts = formParts(contentType, raw);
  if (parts === undefined) throw refuse('invalidJson');
  let values: Wire = {};
  const files: UploadedFile[] = [];
  for (const { head, content, fileName } of parts) {
    const name = /[; ]name="?([^";\r\n]+)"?/i.exec(head)?.[1] ?? '';
    const key = /^files\[(\d+)\]$/.exec(name)?.[1];
    if (name === 'payload_json') values = { ...values, ...(parseJson(content.toString()) as Wire) };
    else if (fileName === undefined) values = { ...values, [name]: content.toString() };
    else if (content.length > limits.file) throw refuse('tooLarge');
    else {
      const mimeType = /content-type:\s*([^\r\n]+)/i.exec(head)?.[1] ?? 'application/octet-stream';
      files.push({
        key: key ?? String(files.length),
        name: fileName,
        mimeType,
        bytes: new Uint8Array(content),
      });
    }
  }
  if (files.length > limits.files)
    throw invalidForm('attachments', 'BASE_TYPE_MAX_LENGTH', 'Must be 10 or fewer in length.');
  return { values, list: [], files };
}
