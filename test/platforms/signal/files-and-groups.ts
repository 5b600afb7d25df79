import { isUtf8 } from 'node:buffer';
import type { Handler, Reply } from './platform.ts';
import { decodeBase64 } from './recipients.ts';
import { ApiError, badRequest, type Group, type Person } from './types.ts';

const noFile = () => new ApiError(404, 'No attachment with that name found');

export const listAttachments: Handler = ({ world }) => ({
  status: 200,
  body: [...world.attachments.keys()],
});

export const getAttachment: Handler = ({ world }, { parts }) => {
  const file = world.attachments.get(parts[0] ?? '');
  if (file === undefined) throw noFile();
  return { status: 200, bytes: file.bytes, type: sniff(Buffer.from(file.bytes)) };
};

/** Detects the type from the bytes; what the message claimed doesn't matter. */
function sniff(bytes: Buffer): string {
  const begins = (hex: string) => bytes.subarray(0, hex.length / 2).toString('hex') === hex;
  if (begins('89504e47')) return 'image/png';
  if (begins('ffd8ff')) return 'image/jpeg';
  if (begins('25504446')) return 'application/pdf';
  if (begins('4f676753')) return 'audio/ogg';
  const isText = isUtf8(bytes) && !bytes.includes(0);
  return isText ? 'text/plain; charset=utf-8' : 'application/octet-stream';
}

export const deleteAttachment: Handler = ({ world }, { parts }) => {
  if (!world.attachments.delete(parts[0] ?? '')) throw noFile();
  return { status: 204 };
};

export const listGroups: Handler = ({ world }, { number, query }) => {
  const account = world.account(number);
  const isMember = (group: Group) => group.members.some(({ uuid }) => uuid === account.uuid);
  const known = world.groups.filter((group) => isMember(group) || group.revision > 0);
  return { status: 200, body: known.map((group) => entry(group, isMember(group), query)) };
};

export const getGroup: Handler = ({ world }, { number, parts, query }): Reply => {
  const account = world.account(number);
  const internalId = decodeBase64((parts[1] ?? '').replace(/^group\./, ''))?.toString();
  if (internalId === undefined) throw badRequest('Invalid group id');
  const group = world.group(internalId);
  if (group === undefined) throw new ApiError(404, 'No group with that id found');
  const isMember = group.members.some(({ uuid }) => uuid === account.uuid);
  return { status: 200, body: entry(group, isMember, query) };
};

/** `?expand=true` identifies people by number and uuid. */
function entry(group: Group, isMember: boolean, query: Readonly<Record<string, string>>) {
  const isWide = query.expand === 'true';
  const name = ({ number, uuid }: Person) => (isWide ? { number: number ?? '', uuid } : (number ?? uuid));
  return {
    name: group.name,
    description: group.description,
    id: group.id,
    internal_id: group.internalId,
    members: group.members.map(name),
    blocked: false,
    member: isMember,
    pending_invites: [],
    pending_requests: [],
    invite_link: '',
    admins: group.members.filter(({ uuid }) => group.admins.has(uuid)).map(name),
    permissions: {
      add_members: 'every-member',
      edit_group: 'only-admins',
      send_messages: group.isAnnouncement ? 'only-admins' : 'every-member',
    },
  };
}
