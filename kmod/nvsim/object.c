// SPDX-License-Identifier: GPL-2.0-only
/* Clients and their object trees. */
#include "engine.h"

#define MAX_OBJECTS	65536

static struct hlist_head *bucket(struct nvsim_client *client, u32 handle)
{
	return &client->hash[(handle ^ handle >> 16) % NVSIM_HASH];
}

/**
 * nvsim_client_find() - A client by its handle.
 * @handle: its handle
 *
 * Context: lock held.
 * Return: the client, or NULL.
 */
struct nvsim_client *nvsim_client_find(u32 handle)
{
	struct nvsim_client *client;

	list_for_each_entry(client, &nvsim.clients, node)
		if (client->handle == handle)
			return client;
	return NULL;
}

/**
 * nvsim_client_new() - A root client.
 * @owner: control file with which it dies
 * @handle: wanted handle, 0 chooses one; the chosen one comes back
 * @task: process, taken over unless the call fails
 *
 * Context: lock held.
 * Return: RM status.
 */
u32 nvsim_client_new(struct nvsim_file *owner, u32 *handle, void *task)
{
	struct nvsim_client *client;
	u32 i;

	while (!*handle || (*handle == nvsim.next_client &&
			    nvsim_client_find(*handle)))
		*handle = nvsim.next_client++;
	if (nvsim_client_find(*handle))
		return NV_ERR_INSERT_DUPLICATE_NAME;
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return NV_ERR_NO_MEMORY;
	INIT_LIST_HEAD(&client->objects);
	for (i = 0; i < NVSIM_HASH; i++)
		INIT_HLIST_HEAD(&client->hash[i]);
	client->owner = owner;
	client->task = task;
	client->handle = *handle;
	client->next_handle = 0xcaf00001;
	list_add_tail(&client->node, &nvsim.clients);
	return NV_OK;
}

/**
 * nvsim_client_free() - Ends a client with all that it has.
 * @client: the client
 *
 * Context: lock held.
 */
void nvsim_client_free(struct nvsim_client *client)
{
	while (!list_empty(&client->objects))
		nvsim_object_free(list_first_entry(&client->objects,
						   struct nvsim_object, node));
	nvsim_space_free(&client->space);
	list_del(&client->node);
	nvsim_host_task_put(client->task);
	kfree(client);
}

/**
 * nvsim_object_find() - An object of a client by its handle.
 * @client: the client
 * @handle: the handle
 *
 * Context: lock held.
 * Return: the object, or NULL (also for the client's own handle).
 */
struct nvsim_object *nvsim_object_find(struct nvsim_client *client, u32 handle)
{
	struct nvsim_object *object;

	hlist_for_each_entry(object, bucket(client, handle), hash)
		if (object->handle == handle)
			return object;
	return NULL;
}

static u32 choose_handle(struct nvsim_client *client)
{
	while (nvsim_object_find(client, client->next_handle) ||
	       !client->next_handle)
		client->next_handle++;
	return client->next_handle++;
}

/**
 * nvsim_object_new() - Adds an object to a client's tree.
 * @client: the client
 * @parent: handle of its parent, or the client's
 * @handle: wanted handle, 0 chooses one; the chosen one comes back
 * @class: RM class
 * @made: the object, NULL unless the call succeeds
 *
 * Context: lock held.
 * Return: RM status.
 */
u32 nvsim_object_new(struct nvsim_client *client, u32 parent, u32 *handle,
		     u32 class, struct nvsim_object **made)
{
	struct nvsim_object *object, *above = NULL;

	*made = NULL;
	if (parent != client->handle) {
		above = nvsim_object_find(client, parent);
		if (!above)
			return NV_ERR_INVALID_OBJECT_PARENT;
	}
	if (!*handle)
		*handle = choose_handle(client);
	if (*handle == client->handle || nvsim_object_find(client, *handle))
		return NV_ERR_INSERT_DUPLICATE_NAME;
	if (client->count >= MAX_OBJECTS)
		return NV_ERR_INSUFFICIENT_RESOURCES;
	object = kzalloc(sizeof(*object), GFP_KERNEL);
	if (!object)
		return NV_ERR_NO_MEMORY;
	object->client = client;
	object->gpu = above ? above->gpu : NULL;
	object->handle = *handle;
	object->parent = parent;
	object->class = class;
	INIT_LIST_HEAD(&object->doorbell);
	INIT_LIST_HEAD(&object->event);
	list_add_tail(&object->node, &client->objects);
	hlist_add_head(&object->hash, bucket(client, object->handle));
	client->count++;
	*made = object;
	return NV_OK;
}

static struct nvsim_object *find_dependent(struct nvsim_client *client, u32 handle)
{
	struct nvsim_object *object;

	list_for_each_entry(object, &client->objects, node)
		if (object->parent == handle || object->depends[0] == handle ||
		    object->depends[1] == handle)
			return object;
	return NULL;
}

static void destroy(struct nvsim_object *object)
{
	if (object->channel)
		nvsim_channel_free(object->channel);
	if (object->tsg) {
		nvsim_tsg_exit(object->tsg);
		kfree(object->tsg);
	}
	if (object->mem)
		nvsim_mem_put(object->mem);
	if (object->notifiers)
		nvsim_mem_put(object->notifiers);
	list_del(&object->doorbell);
	list_del(&object->event);
	kfree(object);
}

/**
 * nvsim_object_free() - Frees an object, its children and its dependents.
 * @object: the object
 *
 * The tree is walked without recursion: the deepest dependent goes first. An
 * object depends on older ones only, so there is always a deepest one.
 *
 * Context: lock held.
 */
void nvsim_object_free(struct nvsim_object *object)
{
	struct nvsim_client *client = object->client;
	struct nvsim_object *victim, *next;

	do {
		victim = object;
		while ((next = find_dependent(client, victim->handle)))
			victim = next;
		list_del(&victim->node);
		hlist_del(&victim->hash);
		client->count--;
		destroy(victim);
	} while (victim != object);
}
