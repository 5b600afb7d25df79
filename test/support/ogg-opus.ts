/** Returns an Ogg Opus file of 20 ms packets with these sizes in bytes; its checksums are empty. */
export function anOggOpus(packets: readonly number[]): Buffer {
  const head = Buffer.concat([Buffer.from('OpusHead\x01\x01'), uint16(312), Buffer.alloc(7)]);
  const tags = Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)]);
  const pages: Buffer[] = [];
  for (let from = 0; from < packets.length; from += 50) {
    const sizes = packets.slice(from, from + 50);
    const granule = 312 + (from + sizes.length) * 960;
    pages.push(
      page(
        granule,
        sizes.map((size) => Buffer.alloc(size, 7)),
      ),
    );
  }
  return Buffer.concat([page(0, [head]), page(0, [tags]), ...pages]);
}

function page(granule: number, packets: readonly Buffer[]): Buffer {
  const segments = packets.flatMap(({ length }) => [
    ...Array.from({ length: Math.floor(length / 255) }, () => 255),
    length % 255,
  ]);
  const header = Buffer.alloc(27);
  header.write('OggS');
  header.writeBigInt64LE(BigInt(granule), 6);
  header[26] = segments.length;
  return Buffer.concat([header, Buffer.from(segments), ...packets]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}
