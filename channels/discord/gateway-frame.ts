/**
 * Reads the gateway's frames before the library acts on them. Pure. Every field is checked and every number
 * clamped: an interval of 0 would cause a flood of heartbeats, and so would one of 1e300.
 */
import { longestJson, OversizedJson } from '#channel-kit/read-json.ts';
import { clampRemote, remoteCount } from '#channel-kit/remote-number.ts';
import { readySchema } from './payload-schema.ts';
import { type Fields, fieldsOf } from './raw-fields.ts';

/** Frames that the library acts on, with the fields that it uses. */
export type Frame =
  | { readonly op: 0; readonly t: string; readonly s: number; readonly d: unknown }
  | { readonly op: 1 | 7 | 11 }
  | { readonly op: 9; readonly d: false }
  | { readonly op: 10; readonly d: { readonly heartbeat_interval: number } };

const heartbeatRange = { min: 1_000, max: 120_000, fallback: 41_250 } as const;
const longestUrl = 1024;
const longestName = 100;
/** Longest beginning of a frame with all fields but its data. */
const longestOuter = 500;

/** Returns undefined for text that isn't a frame, and for a frame that asks for nothing. */
export function readFrame(text: string): Frame | undefined {
  if (text.length > longestJson) return readOversized(text);
  const frame = objectIn(text);
  switch (frame.op) {
    case 0:
      return readDispatch(frame);
    case 1:
    case 7:
    case 11:
      return { op: frame.op };
    case 9:
      // A session that isn't lost continues on another connection: on this one it could be called invalid forever.
      return frame.d === true ? { op: 7 } : { op: 9, d: false };
    case 10: {
      const interval = clampRemote(fieldsOf(frame.d).heartbeat_interval, heartbeatRange);
      return { op: 10, d: { heartbeat_interval: interval } };
    }
    default:
      return undefined;
  }
}

/**
 * Passes on the name and number of an event that is too large to parse, so that it is recorded and Discord doesn't send
 * it again. Without its number before its data, the session is dropped and the history is read instead.
 */
function readOversized(text: string): Frame | undefined {
  const [outer = ''] = text.slice(0, longestOuter).split('"d":');
  const [op, t, s] = [/"op":(\d+)/, /"t":"(\w+)"/, /"s":(\d+)/].map((field) => field.exec(outer)?.[1]);
  if (op !== undefined && op !== '0') return undefined;
  if (t === undefined || s === undefined) return { op: 9, d: false };
  return t === 'READY' ? undefined : readDispatch({ t, s: Number(s), d: new OversizedJson(text) });
}

function readDispatch({ t, d, s }: Fields): Frame | undefined {
  if (typeof t !== 'string' || t.length > longestName) return undefined;
  const dispatch = { op: 0, t, s: remoteCount(s), d } as const;
  if (t !== 'READY') return dispatch;
  if (!readySchema.safeParse(d).success) return undefined;
  const resumeUrl = readGatewayUrl(fieldsOf(d).resume_gateway_url);
  return { ...dispatch, d: { ...fieldsOf(d), resume_gateway_url: resumeUrl } };
}

/** Returns an address that a socket can connect to, without its query; undefined for anything else. */
export function readGatewayUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > longestUrl) return undefined;
  const url = URL.parse(value);
  const isSocket = url?.protocol === 'wss:' || url?.protocol === 'ws:';
  if (url === null || !isSocket) return undefined;
  // The socket rejects a fragment, and Discord uses no user name or password.
  url.hash = '';
  url.username = '';
  url.password = '';
  url.search = '';
  return url.href;
}

function objectIn(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return {};
  }
}
