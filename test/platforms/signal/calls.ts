import { randomUUID } from 'node:crypto';
import { onePixel } from '../../support/one-pixel.ts';
import { bindBody } from './bind.ts';
import type { Handler, Incoming, Platform, Reply } from './platform.ts';
import { placeOf } from './recipients.ts';
import { checkMembership } from './send.ts';
import { type Account, badRequest, type Place } from './types.ts';

const done: Reply = { status: 204 };
const missing = (what: string) => badRequest(`Couldn't process request - ${what} missing`);

export const about: Handler = ({ mode, version }) => ({
  status: 200,
  body: {
    versions: ['v1', 'v2'],
    build: 2,
    mode,
    version,
    capabilities: { 'v2/send': ['quotes', 'mentions'] },
  },
});

export const health: Handler = () => done;

export const accounts: Handler = ({ world }) => ({
  status: 200,
  body: world.accounts.map(({ number }) => number),
});

export const configuration: Handler = ({ logLevel }) => ({
  status: 200,
  body: { logging: { Level: logLevel } },
});

export const configure: Handler = (platform, { body }) => {
  bindBody(body, {});
  const { logging } = body as { logging?: unknown };
  const { Level: level } = bindBody(logging ?? {}, { Level: 'string' });
  if (level && !['debug', 'info', 'warn'].includes(level)) throw badRequest('Unsupported log level');
  if (level) platform.logLevel = level;
  return done;
};

export const typing =
  (isOn: boolean): Handler =>
  (platform, call) => {
    const { recipient } = bindBody(call.body, { recipient: 'string' });
    const { place } = target(platform, call, recipient ?? '');
    if (place !== undefined) platform.typing.push({ place, isOn, at: platform.now() });
    return done;
  };

export const react =
  (isRemove: boolean): Handler =>
  (platform, call) => {
    const request = bindBody(call.body, {
      recipient: 'string',
      reaction: 'string',
      target_author: 'string',
      timestamp: 'int',
    });
    if (!request.recipient) throw missing('recipient');
    if (!isRemove && !request.reaction) throw missing('reaction');
    if (!request.target_author) throw missing('target_author');
    if (!request.timestamp) throw missing('timestamp');
    const { account, place } = target(platform, call, request.recipient);
    if (place === undefined) return done;
    const author = platform.world.person(request.target_author);
    const message =
      author === undefined ? undefined : platform.world.find(account, place, request.timestamp, author);
    if (message === undefined)
      platform.note(`reaction to ${request.timestamp} by ${request.target_author}: no such message there`);
    else if (isRemove) message.reactions.delete(account.uuid);
    else message.reactions.set(account.uuid, request.reaction ?? '');
    return done;
  };

export const remoteDelete: Handler = (platform, call) => {
  const request = bindBody(call.body, { recipient: 'string', timestamp: 'int' });
  if (!request.recipient) throw missing('recipient');
  if (!request.timestamp) throw missing('timestamp');
  const { account, place } = target(platform, call, request.recipient);
  const message =
    place === undefined ? undefined : platform.world.find(account, place, request.timestamp, account);
  const timestamp = platform.world.nextTimestamp();
  if (message === undefined)
    platform.note(`delete of ${request.timestamp}, which is no message of ${account.number} there`);
  else {
    message.isDeleted = true;
    platform.afterwards.push(() => platform.people.relaysDelete(message, timestamp));
  }
  return { status: 201, body: { timestamp: String(timestamp) }, timestamp };
};

export const receipt: Handler = (platform, call) => {
  const request = bindBody(call.body, { recipient: 'string', receipt_type: 'string', timestamp: 'int' });
  if (!request.recipient) throw missing('recipient');
  if (!['read', 'viewed'].includes(request.receipt_type ?? ''))
    throw badRequest("Couldn't process request - receipt type must be read or viewed");
  if (!request.timestamp) throw missing('timestamp');
  const account = platform.world.account(call.number);
  const reader = platform.world.person(request.recipient);
  const messages = [
    ...(reader === undefined ? [] : platform.world.messages(account, { person: reader })),
    ...platform.world.groups.flatMap((group) => platform.world.messages(account, { group })),
  ];
  const message = messages.find(
    (one) => one.timestamp === request.timestamp && one.from.uuid === reader?.uuid,
  );
  if (message === undefined)
    platform.note(`receipt for ${request.timestamp} to ${request.recipient}: they sent no such message`);
  else message.readBy.add(account.uuid);
  return done;
};

export const solveChallenge: Handler = (platform, call) => {
  const request = bindBody(call.body, { challenge_token: 'string', captcha: 'string' });
  const { number } = platform.world.account(call.number);
  const { challenge_token: token = '', captcha = '' } = request;
  platform.captchas.push({ token, captcha });
  const waiting = platform.challenges.get(number);
  if (!captcha.startsWith('signalcaptcha://') || !waiting?.includes(token) || token === '')
    throw badRequest(
      'Captcha rejected, it may be outdated, already used or solved from a different IP address.',
    );
  platform.challenges.delete(number);
  return done;
};

export const updateProfile: Handler = (platform, call) => {
  const { name } = bindBody(call.body, { name: 'string', base64_avatar: 'string', about: 'string' });
  const account = platform.world.account(call.number);
  if (!name) throw badRequest("Couldn't process request - profile name missing");
  platform.world.renameAccount(account, name);
  return done;
};

/** Includes the account itself: signal-cli trusts its own keys (ACI and PNI) like those of others. */
export const listIdentities: Handler = (platform, call) => {
  const account = platform.world.account(call.number);
  return {
    status: 200,
    body: [account, account, ...platform.world.people].map(({ number, uuid }) => ({
      number: number ?? '',
      status: 'TRUSTED_UNVERIFIED',
      added: '1700000000000',
      fingerprint: '05 00',
      safety_number: '00000 11111',
      uuid,
    })),
  };
};

/** `all_recipients=true` lists everybody that signal-cli knows, including the account itself. */
export const listContacts: Handler = (platform, call) => {
  const account = platform.world.account(call.number);
  const own = call.query.all_recipients === 'true' ? [account] : [];
  return {
    status: 200,
    body: [...platform.world.people, ...own].map(({ name, number, uuid, username }) => ({
      number: number ?? '',
      uuid,
      name: '',
      profile_name: name,
      username: username ?? '',
      color: '',
      blocked: false,
      message_expiration: '0',
      note: '',
      given_name: name,
      nickname: { name: '', given_name: '', family_name: '' },
      profile: {
        given_name: name,
        lastname: '',
        about: '',
        has_avatar: false,
        last_updated_timestamp: 0,
      },
    })),
  };
};

export const updateContact: Handler = (platform, call) => {
  const request = bindBody(call.body, {
    recipient: 'string',
    name: 'string',
    expiration_in_seconds: 'int',
  });
  if (!request.recipient) throw missing('recipient');
  const { account, place } = target(platform, call, request.recipient);
  if (place !== undefined && request.expiration_in_seconds !== undefined)
    platform.world.setTimer(account, place, request.expiration_in_seconds);
  return done;
};

export const linkUri: Handler = (platform, call) => {
  const deviceName = call.query.device_name ?? '';
  if (deviceName === '') throw badRequest('Please provide a name for the device');
  const uri = `sgnl://linkdevice?uuid=${encodeURIComponent(randomUUID())}&pub_key=${encodeURIComponent(
    Buffer.from(`key of ${platform.links.length}`.padEnd(33, '.')).toString('base64'),
  )}`;
  platform.links.push({ uri, deviceName, isUsed: false });
  return { status: 200, body: { device_link_uri: uri } };
};

/** Answers with a picture, which doesn't really show the URI. */
export const linkPicture: Handler = (platform, call) => {
  if (call.query.qrcode_version !== undefined && !/^\d+$/.test(call.query.qrcode_version))
    throw badRequest('The qrcode_version parameter needs to be an integer!');
  linkUri(platform, call);
  return { status: 200, bytes: onePixel, type: 'image/png' };
};

/** Returns the account of the path and the place of the recipient; undefined if nobody here has that id. */
function target(
  platform: Platform,
  call: Incoming,
  recipient: string,
): { account: Account; place: Place | undefined } {
  const account = platform.world.account(call.number);
  const place = placeOf(platform.world, recipient);
  if (place === undefined) platform.note(`${recipient} is nobody here`);
  else checkMembership(place, account);
  return { account, place };
}
