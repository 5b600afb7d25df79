import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseJson } from '#channel-kit/parse-json.ts';
import { request } from '../http/node-http.ts';

type HttpAnswer =
  | {
      readonly kind: 'answer';
      readonly httpStatus: number;
      readonly body: unknown;
      readonly retryAfterS: number | undefined;
    }
  | { readonly kind: 'away' }
  | { readonly kind: 'foreign' };

/** The request of a command; its signal ends the wait for the answer. */
type Request = {
  readonly signal: AbortSignal;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** Asks a process of Parley. Without `fetch`, which takes longer to load than all else that a short command needs. */
export async function askHttp(url: string, { body: sent, ...options }: Request): Promise<HttpAnswer> {
  try {
    // No connection is left open at the end.
    const asking = request(url, { ...options, agent: false }).end(sent);
    // One that comes after the answer has begun is seen where the rest of it is read.
    asking.on('error', () => undefined);
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    const body: unknown = await readJson(answer);
    const waitS = Number.parseInt(answer.headers['retry-after'] ?? '', 10);
    const retryAfterS = waitS > 0 && waitS <= 86_400 ? waitS : undefined;
    return { kind: 'answer', httpStatus: answer.statusCode ?? 0, body, retryAfterS };
  } catch (error) {
    return { kind: isRefused(error) ? 'away' : 'foreign' };
  }
}

/** Returns undefined for anything that isn't JSON: another program may be listening there. */
async function readJson(answer: IncomingMessage): Promise<unknown> {
  try {
    return parseJson(await text(answer));
  } catch {
    return undefined;
  }
}

/** Says whether nothing listens. A listener that speaks another protocol isn't Parley, but it does occupy the port. */
function isRefused(error: unknown): boolean {
  const codes = error instanceof AggregateError ? error.errors : [error];
  return codes.some((one) => one instanceof Error && 'code' in one && one.code === 'ECONNREFUSED');
}
