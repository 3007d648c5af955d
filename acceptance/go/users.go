package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/couchbase/gocb/v2"
)

const (
	usersPassword = "a-password"
	patience      = 2 * time.Second
)

var (
	reader = gocb.Role{Name: "data_reader", Bucket: bucketName}
	writer = gocb.Role{Name: "data_writer", Bucket: bucketName}
)

// Users, groups, and what they may do.
var userCases = []testCase{
	{"users-come-and-go", usersComeAndGo},
	{"groups-come-and-go", groupsComeAndGo},
	{"roles-are-listed", rolesAreListed},
	{"own-password", ownPassword},
	{"reader-does-not-write", readerDoesNotWrite},
	{"user-of-one-collection", userOfOneCollection},
	{"removed-user", removedUser},
}

// put makes or changes a user with these roles.
func put(s *sdk, name string, roles ...gocb.Role) error {
	return s.cluster.Users().UpsertUser(gocb.User{
		Username: name, DisplayName: "User " + name, Password: usersPassword, Roles: roles,
	}, nil)
}

// asUser connects as a user and runs a body with the bucket as that user has it.
func asUser(name string, body func(*gocb.Bucket) error) error {
	cluster, err := connect(name, usersPassword)
	if err != nil {
		return err
	}
	defer cluster.Close(nil)
	bucket := cluster.Bucket(bucketName)
	if err := bucket.WaitUntilReady(readyIn, nil); err != nil {
		return err
	}
	return body(bucket)
}

// roleNames are sorted.
func roleNames(roles []gocb.Role) []string {
	names := make([]string, len(roles))
	for index, role := range roles {
		names[index] = role.Name
	}
	slices.Sort(names)
	return names
}

func expectRoles(got []gocb.Role, wanted ...string) error {
	names := roleNames(got)
	if !slices.Equal(names, wanted) {
		return errors.New("other roles: " + strings.Join(names, " "))
	}
	return nil
}

func usersComeAndGo(s *sdk) error {
	manager := s.cluster.Users()
	_, before := manager.GetUser("alice", nil)
	if err := steps(
		func() error { return expectError(before, gocb.ErrUserNotFound) },
		func() error { return put(s, "alice", reader) },
	); err != nil {
		return err
	}
	found, err := manager.GetUser("alice", nil)
	if err != nil {
		return err
	}
	all, err := manager.GetAllUsers(nil)
	if err != nil {
		return err
	}
	isAlice := func(user gocb.UserAndMetadata) bool { return user.Username == "alice" }
	if err := steps(
		func() error { return expectEqual(found.DisplayName, "User alice", "displayed name") },
		func() error { return expectRoles(found.Roles, "data_reader") },
		func() error { return expect(slices.ContainsFunc(all, isAlice), "it is listed") },
		func() error { return put(s, "alice", reader, writer) },
	); err != nil {
		return err
	}
	if found, err = manager.GetUser("alice", nil); err != nil {
		return err
	}
	if err := steps(
		func() error { return expectRoles(found.Roles, "data_reader", "data_writer") },
		func() error { return manager.DropUser("alice", nil) },
	); err != nil {
		return err
	}
	_, after := manager.GetUser("alice", nil)
	return steps(
		func() error { return expectError(after, gocb.ErrUserNotFound) },
		func() error { return expectError(manager.DropUser("alice", nil), gocb.ErrUserNotFound) },
	)
}

func groupsComeAndGo(s *sdk) error {
	manager := s.cluster.Users()
	_, before := manager.GetGroup("readers", nil)
	group := gocb.Group{
		Name: "readers", Description: "They read", Roles: []gocb.Role{reader},
	}
	if err := steps(
		func() error { return expectError(before, gocb.ErrGroupNotFound) },
		func() error { return manager.UpsertGroup(group, nil) },
	); err != nil {
		return err
	}
	found, err := manager.GetGroup("readers", nil)
	if err != nil {
		return err
	}
	all, err := manager.GetAllGroups(nil)
	if err != nil {
		return err
	}
	bob := gocb.User{Username: "bob", Password: usersPassword, Groups: []string{"readers"}}
	if err := manager.UpsertUser(bob, nil); err != nil {
		return err
	}
	user, err := manager.GetUser("bob", nil)
	if err != nil {
		return err
	}
	var effective []gocb.Role
	for _, each := range user.EffectiveRoles {
		effective = append(effective, each.Role)
	}
	return steps(
		func() error { return expectEqual(found.Description, "They read", "description") },
		func() error { return expectRoles(found.Roles, "data_reader") },
		func() error { return expectEqual(len(all), 1, "number of groups") },
		func() error { return expectRoles(effective, "data_reader") },
		func() error { return manager.DropGroup("readers", nil) },
		func() error {
			return expectError(manager.DropGroup("readers", nil), gocb.ErrGroupNotFound)
		},
		func() error { return manager.DropUser("bob", nil) },
	)
}

func rolesAreListed(s *sdk) error {
	described, err := s.cluster.Users().GetRoles(nil)
	if err != nil {
		return err
	}
	var roles []gocb.Role
	for _, each := range described {
		roles = append(roles, each.Role)
	}
	names := roleNames(roles)
	for _, known := range []string{"admin", "bucket_admin", "data_reader", "data_writer"} {
		if !slices.Contains(names, known) {
			return errors.New(known + " is listed")
		}
	}
	return nil
}

func ownPassword(s *sdk) error {
	if err := put(s, "carol", gocb.Role{Name: "admin"}); err != nil {
		return err
	}
	if err := asUser("carol", func(*gocb.Bucket) error { return nil }); err != nil {
		return err
	}
	carol, err := connect("carol", usersPassword)
	if err != nil {
		return err
	}
	defer carol.Close(nil)
	return steps(
		func() error { return carol.WaitUntilReady(readyIn, nil) },
		func() error { return carol.Users().ChangePassword("another-one", nil) },
		func() error { return expectRefused("carol", usersPassword) },
		func() error {
			again, err := connect("carol", "another-one")
			if err != nil {
				return err
			}
			defer again.Close(nil)
			return again.Bucket(bucketName).WaitUntilReady(readyIn, nil)
		},
		func() error { return s.cluster.Users().DropUser("carol", nil) },
	)
}

func readerDoesNotWrite(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if err := put(s, "dave", reader); err != nil {
		return err
	}
	body := func(bucket *gocb.Bucket) error {
		collection := bucket.DefaultCollection()
		_, missing := collection.Get(s.key(), nil)
		_, stored := collection.Upsert(key, numbered{2}, &gocb.UpsertOptions{Timeout: patience})
		_, removed := collection.Remove(key, &gocb.RemoveOptions{Timeout: patience})
		return steps(
			func() error { return expectExists(collection, key, true) },
			func() error { return expectError(missing, gocb.ErrDocumentNotFound) },
			func() error { return expect(stored != nil, "a reader does not store") },
			func() error { return expect(removed != nil, "a reader does not remove") },
			func() error { return s.expectNumber(key, 1) },
			// It learns at once that it may.
			func() error { return put(s, "dave", reader, writer) },
			func() error { return upsert(collection, key, 3) },
		)
	}
	return steps(
		func() error { return asUser("dave", body) },
		func() error { return s.expectNumber(key, 3) },
		func() error { return s.cluster.Users().DropUser("dave", nil) },
	)
}

func userOfOneCollection(s *sdk) error {
	manager := s.bucket.CollectionsV2()
	own := func(role gocb.Role) gocb.Role {
		role.Scope, role.Collection = "private", "own"
		return role
	}
	if err := steps(
		func() error { return manager.CreateScope("private", nil) },
		func() error { return manager.CreateCollection("private", "own", nil, nil) },
		func() error { return manager.CreateCollection("private", "foreign", nil, nil) },
		func() error { return put(s, "erin", own(reader), own(writer)) },
	); err != nil {
		return err
	}
	body := func(bucket *gocb.Bucket) error {
		scope := bucket.Scope("private")
		if err := upsert(scope.Collection("own"), "k", 1); err != nil {
			return err
		}
		return steps(
			func() error { return expectExists(scope.Collection("own"), "k", true) },
			func() error { return expectUnknown(scope.Collection("foreign")) },
		)
	}
	return steps(
		func() error { return asUser("erin", body) },
		func() error { return s.cluster.Users().DropUser("erin", nil) },
		func() error { return manager.DropScope("private", nil) },
	)
}

func removedUser(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if err := put(s, "frank", reader); err != nil {
		return err
	}
	body := func(bucket *gocb.Bucket) error {
		collection := bucket.DefaultCollection()
		isRefused := func() bool {
			_, err := collection.Get(key, &gocb.GetOptions{Timeout: patience})
			return err != nil
		}
		return steps(
			func() error { return expectExists(collection, key, true) },
			func() error { return s.cluster.Users().DropUser("frank", nil) },
			func() error { return waitUntil(isRefused, readyIn, "its connections are of no use") },
		)
	}
	return steps(
		func() error { return asUser("frank", body) },
		func() error { return expectRefused("frank", usersPassword) },
	)
}

// connectAsAdministrator makes another cluster object of the node's administrator.
func connectAsAdministrator() (*gocb.Cluster, error) {
	return connect(os.Getenv("SETTEE_USER"), os.Getenv("SETTEE_PASSWORD"))
}
