/**
 * Reads what Discord wants to know about a voice message from the pages of its Ogg container: how long it is, and a
 * waveform. Opus needs more bytes for louder sound, so the size of a page's packets stands for its loudness.
 */
import { type FileHandle, open } from 'node:fs/promises';

export type Voice = {
  readonly durationSecs: number;
  /** A byte for each point, at most 256, as Base64. */
  readonly waveform: string;
};

/** Opus counts its samples at this rate, whatever the recording's own. */
const samplesPerSecond = 48_000;
const maxPoints = 256;
const headerBytes = 27;
/** A page of a second or less takes a few kB, so no voice message has more; ten hours. */
const maxPages = 40_000;

/** Returns undefined if the file isn't Ogg Opus, or has no sound. */
export async function readVoice(path: string): Promise<Voice | undefined> {
  try {
    await using file = await open(path, 'r');
    const pages = await readPages(file);
    const last = pages.findLast(({ granule }) => granule >= 0n);
    const [first, , ...audio] = pages;
    if (first === undefined || last === undefined || audio.length === 0) return undefined;
    const durationSecs = (Number(last.granule) - first.preSkip) / samplesPerSecond;
    if (!(durationSecs > 0)) return undefined;
    return { durationSecs: Math.round(durationSecs * 100) / 100, waveform: waveformOf(audio) };
  } catch {
    return undefined; // It is then sent as a file, whose own problem is told when it is read.
  }
}

type Page = {
  /** The samples up to its end; -1: no packet ends in it. */
  readonly granule: bigint;
  readonly packets: readonly number[];
  /** Samples to skip at the start; 0 on all but the first page. */
  readonly preSkip: number;
};

async function readPages(file: FileHandle): Promise<readonly Page[]> {
  const pages: Page[] = [];
  const head = Buffer.alloc(headerBytes + 255 + 19);
  for (let at = 0; pages.length < maxPages; ) {
    const { bytesRead } = await file.read(head, 0, head.length, at);
    if (bytesRead < headerBytes || head.toString('latin1', 0, 4) !== 'OggS') break;
    const segments = head.subarray(headerBytes, headerBytes + (head[26] ?? 0));
    const body = headerBytes + segments.length;
    const isFirst = pages.length === 0;
    if (isFirst && head.toString('latin1', body, body + 8) !== 'OpusHead') return [];
    pages.push({
      granule: head.readBigInt64LE(6),
      packets: packetsOf(segments),
      preSkip: isFirst ? head.readUInt16LE(body + 10) : 0,
    });
    at += body + segments.reduce((sum, size) => sum + size, 0);
  }
  return pages;
}

/** Returns the sizes of the packets that end in a page: a segment of 255 bytes is continued by the next one. */
function packetsOf(segments: Uint8Array): readonly number[] {
  const packets: number[] = [];
  let size = 0;
  for (const segment of segments) {
    size += segment;
    if (segment === 255) continue;
    packets.push(size);
    size = 0;
  }
  return packets;
}

function waveformOf(pages: readonly Page[]): string {
  const packets = pages.flatMap((page) => page.packets);
  const points = Math.min(maxPoints, packets.length);
  const loudest = packets.reduce((most, size) => Math.max(most, size), 1);
  const bytes = Buffer.alloc(Math.max(1, points));
  for (let point = 0; point < points; point += 1) {
    const from = Math.floor((point * packets.length) / points);
    const to = Math.max(from + 1, Math.floor(((point + 1) * packets.length) / points));
    const peak = packets.slice(from, to).reduce((most, size) => Math.max(most, size), 0);
    bytes[point] = Math.round((peak / loudest) * 255);
  }
  return bytes.toString('base64');
}
