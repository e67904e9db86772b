import { byCodeUnit } from './canonical.js';

/** What a capability may demand of the message that a run answers. Missing and empty demand nothing. */
export interface Filterable {
  readonly platforms?: readonly string[] | null;
  readonly scopes?: readonly Scene[] | null;
  /** Permits, all of which must hold: `adapter(…)`, `private|group|channel(…)`, `user(…)`, `role(…)`, `platform(adapter, permit)`. */
  readonly permissions?: readonly string[] | null;
}
export type Scene = 'private' | 'group' | 'channel';

/** What is known of the message and its sender. A run without a message (HTTP, a schedule) has none, and sees only what demands nothing. */
export interface Subject {
  readonly adapter: string;
  readonly scene: Scene;
  readonly sceneId: string;
  readonly userId: string;
  readonly roles: readonly string[];
  /** Permits that the platform itself vouches for, for this sender in this scene. */
  readonly platformPermits: readonly string[];
}
export type SubjectField = keyof Subject;

export interface FilterVerdict {
  readonly name: 'platforms' | 'scopes' | 'permissions';
  readonly verdict: 'pass' | 'fail';
  readonly detail: string;
}

interface Permit {
  readonly name: string;
  readonly values: readonly string[];
}

const PERMIT = /^(adapter|private|group|channel|user|role|platform)\(([^()]*)\)$/;

function parsePermit(text: string): Permit | null {
  const match = PERMIT.exec(text.trim());
  if (match === null) return null;
  const [, name = '', inner = ''] = match;
  const values = inner
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
  if (name === 'platform') return values.length === 2 ? { name, values } : null;
  // A permit that names nobody would hold for a sender without an id.
  if ((name === 'user' || name === 'role' || name === 'adapter') && values.length === 0) return null;
  return { name, values };
}

/** Why a permit cannot be registered; null where it can. */
export function permitProblem(text: string): string | null {
  return parsePermit(text) === null
    ? `"${text.slice(0, 100)}" is not adapter(…), private|group|channel(…), user(…), role(…) or platform(adapter, permit)`
    : null;
}

/** What any of these capabilities asks a platform about, where the message came through its adapter: in order, each once. */
export function platformPermitsOf(capabilities: Iterable<Filterable>, adapter: string): string[] {
  const permits = new Set<string>();
  for (const { permissions } of capabilities)
    for (const text of permissions ?? []) {
      const permit = parsePermit(text);
      if (permit?.name === 'platform' && permit.values[0] === adapter && permit.values[1] !== undefined) permits.add(permit.values[1]);
    }
  return [...permits].sort(byCodeUnit);
}

const FIELDS: Readonly<Record<string, readonly SubjectField[]>> = {
  adapter: ['adapter'],
  private: ['scene', 'sceneId'],
  group: ['scene', 'sceneId'],
  channel: ['scene', 'sceneId'],
  user: ['userId'],
  role: ['roles'],
  platform: ['adapter', 'platformPermits'],
};

function holds({ name, values }: Permit, subject: Subject): boolean {
  switch (name) {
    case 'adapter':
      return values.includes(subject.adapter);
    case 'user':
      return subject.userId !== '' && values.includes(subject.userId);
    case 'role':
      return values.some((role) => subject.roles.includes(role) || (role === 'trusted' && subject.roles.includes('master')));
    case 'platform':
      return values[0] === subject.adapter && subject.platformPermits.includes(values[1] ?? '');
    default:
      return name === subject.scene && (values.length === 0 || values.includes('*') || values.includes(subject.sceneId));
  }
}

const mark = (passes: boolean) => (passes ? 'pass' : 'fail');

/** Asks each filter that a capability declares; none declared is an empty list, which passes. */
export function filterVerdicts(capability: Filterable, subject: Subject | null): FilterVerdict[] {
  const verdicts: FilterVerdict[] = [];
  const platforms = capability.platforms ?? [];
  const scopes = capability.scopes ?? [];
  const permissions = capability.permissions ?? [];
  const nobody = 'the run answers no message';
  if (platforms.length > 0)
    verdicts.push({
      name: 'platforms',
      verdict: mark(subject !== null && platforms.includes(subject.adapter)),
      detail: subject === null ? nobody : `${subject.adapter} of ${platforms.join(', ')}`,
    });
  if (scopes.length > 0)
    verdicts.push({
      name: 'scopes',
      verdict: mark(subject !== null && scopes.includes(subject.scene)),
      detail: subject === null ? nobody : `${subject.scene} of ${scopes.join(', ')}`,
    });
  if (permissions.length > 0) {
    const missing = subject === null ? permissions : permissions.filter((text) => !permitHolds(text, subject));
    verdicts.push({
      name: 'permissions',
      verdict: mark(missing.length === 0),
      detail: subject === null ? nobody : missing.length === 0 ? 'all hold' : `missing ${missing.join(' and ')}`,
    });
  }
  return verdicts;
}

function permitHolds(text: string, subject: Subject): boolean {
  const permit = parsePermit(text);
  return permit !== null && holds(permit, subject);
}

/** The fields of the subject that a capability's filters read: two subjects that differ in none of them see the same. */
export function fieldsConsulted(capability: Filterable): SubjectField[] {
  const fields: SubjectField[] = [];
  if ((capability.platforms ?? []).length > 0) fields.push('adapter');
  if ((capability.scopes ?? []).length > 0) fields.push('scene');
  for (const text of capability.permissions ?? []) fields.push(...(FIELDS[parsePermit(text)?.name ?? ''] ?? []));
  return fields;
}
