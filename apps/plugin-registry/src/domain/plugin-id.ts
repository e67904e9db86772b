import { sha256Hex } from '@ambit/capability';
import { PluginId } from '@ambit/contracts';

const ID_MAX = 64;
const SUFFIX = 8;

/** The id of a plugin whose format allows other names: the name itself, or where that cannot be, made of it with a piece of its hash. */
export function pluginIdOf(name: string): string {
  if (PluginId.safeParse(name).success) return name;
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, ID_MAX - SUFFIX - 1)
    .replace(/-+$/, '');
  return `${plain === '' ? 'plugin' : plain}-${sha256Hex(name).slice(0, SUFFIX)}`;
}
