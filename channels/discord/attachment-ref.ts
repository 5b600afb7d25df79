/** Where a file was found, so that it can be requested again once its signed link has expired. */
export type AttachmentLocation = {
  readonly channel: string;
  readonly message: string;
  /** `0` for a picture that isn't an uploaded file. */
  readonly id: string;
  readonly url: string;
};

export function formatRef({ channel, message, id, url }: AttachmentLocation): string {
  return `${channel}/${message}/${id} ${url}`;
}

/** Returns undefined if the text isn't one of this channel's refs. */
export function readRef(ref: string): AttachmentLocation | undefined {
  const [, channel, message, id, url] = /^(\d{1,20})\/(\d{1,20})\/(\d{1,20}) (https?:\S+)$/.exec(ref) ?? [];
  if (channel === undefined || message === undefined || id === undefined || url === undefined)
    return undefined;
  return { channel, message, id, url };
}

/** Hosts of the files that people upload, and of Discord's copies of other pictures. */
const hosts = new Set([
  'cdn.discordapp.com',
  'media.discordapp.net',
  'images-ext-1.discordapp.net',
  'images-ext-2.discordapp.net',
]);

/** Says whether Discord itself serves the file. */
export function isDiscordFile(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed?.protocol === 'https:' && hosts.has(parsed.hostname);
}
