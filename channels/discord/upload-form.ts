import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';

export type UploadFile = {
  readonly path: string;
  /** Without quotes, slashes and control characters. */
  readonly name: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
};

/** A message with files, as a form whose files are read while they are sent: none is ever in memory as a whole. */
export class UploadForm {
  readonly #boundary = `parley-${randomUUID()}`;
  readonly #files: readonly { readonly head: Buffer; readonly file: UploadFile }[];
  readonly #payload: Buffer;
  readonly #end: Buffer;

  constructor(payload: unknown, files: readonly UploadFile[]) {
    const open = `--${this.#boundary}\r\nContent-Disposition: form-data; name=`;
    const json = `${open}"payload_json"\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(payload)}\r\n`;
    this.#payload = Buffer.from(json);
    this.#files = files.map((file, index) => {
      const { name, mimeType } = file;
      const named = `${open}"files[${index}]"; filename="${name}"\r\nContent-Type: ${mimeType}\r\n\r\n`;
      return { head: Buffer.from(named), file };
    });
    this.#end = Buffer.from(`--${this.#boundary}--\r\n`);
  }

  get headers(): Readonly<Record<string, string>> {
    const files = this.#files.map(({ head, file }) => head.length + file.sizeBytes + lineEnd.length);
    const length = [this.#payload.length, ...files, this.#end.length].reduce((sum, one) => sum + one, 0);
    return {
      'content-type': `multipart/form-data; boundary=${this.#boundary}`,
      'content-length': String(length),
    };
  }

  async *bytes(): AsyncGenerator<Uint8Array> {
    yield this.#payload;
    for (const { head, file } of this.#files) {
      yield head;
      yield* createReadStream(file.path);
      yield lineEnd;
    }
    yield this.#end;
  }
}

const lineEnd = Buffer.from('\r\n');
