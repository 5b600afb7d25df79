/** Where an attachment was found, so that it can be requested again once its signed link has expired. */
export type AttachmentLocation = {
  readonly channel: string;
  readonly message: string;
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
